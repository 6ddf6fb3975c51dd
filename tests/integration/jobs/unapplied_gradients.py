"""Takes training steps without an optimizer, then steps of the kind in the argument."""

import sys
import threading
import time

import numpy as np
import tensorflow as tf

W = tf.Variable(3.0)
X, Y = np.ones((8, 2), "f4"), np.ones((8, 1), "f4")


def eager_steps():
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = W * W
        W.assign_sub(0.1 * tape.gradient(loss, W))


def fit():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, epochs=1, batch_size=2, verbose=0)


def call():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    for _ in range(4):
        model(X)


def function():
    step = tf.function(lambda x: x * W)
    for _ in range(4):
        step(tf.ones([2]))


if sys.argv[1] == "thread":
    thread = threading.Thread(target=eager_steps)
    thread.start()
    thread.join()
    time.sleep(6)  # the recording of the last step ends after five seconds
    fit()
else:
    eager_steps()
    {"fit": fit, "call": call, "function": function}[sys.argv[1]]()
print("ready", flush=True)
sys.stdin.readline()
