"""Trains until standard input ends: python ordered.py session|function|fit PAUSE_S.

With `empty` it calls a function that has no op.
"""

import os
import sys
import threading
import time

import numpy as np
import tensorflow as tf

LOOP, PAUSE_S = sys.argv[1], float(sys.argv[2])
DATA = np.ones((8, 32), np.float32)


def leave():
    sys.stdin.read()
    os._exit(0)


def session():
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as sess:
        inputs = v1.placeholder(tf.float32, [8, 32])
        weights = v1.get_variable("weights", [32, 4])
        loss = tf.reduce_sum(tf.matmul(inputs, weights) ** 2)
        train = v1.train.GradientDescentOptimizer(1e-6).minimize(loss)
        sess.run(v1.global_variables_initializer())
        while True:
            sess.run([train, loss], {inputs: DATA})
            time.sleep(PAUSE_S)


def function():
    weights = tf.Variable(tf.ones([32, 4]))

    @tf.function
    def train(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(inputs, weights) ** 2)
        weights.assign_sub(1e-6 * tape.gradient(loss, weights))
        return loss

    inputs = tf.constant(DATA)
    while True:
        train(inputs)
        time.sleep(PAUSE_S)


def empty():
    nothing = tf.function(lambda: None)
    while True:
        nothing()
        time.sleep(PAUSE_S)


def fit():
    class Pause(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(PAUSE_S)

        on_batch_end = on_train_batch_end if tf.__version__ < "2" else tf.keras.callbacks.Callback.on_batch_end

    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(32,))])
    model.compile("sgd", "mse")
    data, targets = np.ones((800, 32), np.float32), np.ones((800, 4), np.float32)
    model.fit(data, targets, batch_size=8, epochs=10**6, verbose=0, callbacks=[Pause()])


threading.Thread(target=leave, daemon=True).start()
{"session": session, "function": function, "empty": empty, "fit": fit}[LOOP]()
