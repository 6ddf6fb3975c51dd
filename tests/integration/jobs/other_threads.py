"""Calls two functions at the same time, each in its own thread, with ops of different types."""

import os
import threading

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

CALLS = 40
ended = threading.Event()
values = tf.ones([300, 300])


@tf.function
def step():
    result = values
    for _ in range(20):
        result = tf.matmul(result, values)
    return tf.reduce_sum(result)


@tf.function
def background():
    result = values
    for _ in range(20):
        result = tf.nn.softmax(result)
    return tf.reduce_max(result)


def work():
    while not ended.is_set():
        background().numpy()


background()
thread = threading.Thread(target=work)
thread.start()
for _ in range(CALLS):
    step().numpy()
ended.set()
thread.join()
print("ready", flush=True)
input()
