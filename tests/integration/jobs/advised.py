"""Jobs for `tfprof advise`, without output: advised.py MODE, the name of a function below."""

import sys
import time

import numpy as np
import tensorflow as tf

SECONDS = 45  # the memory checker needs this long to recognize growth


def slowly(value):  # the line of input_bound
    time.sleep(0.02)
    return value


def input_bound():
    data = tf.data.Dataset.from_tensor_slices(np.zeros((60, 8, 4), "float32"))
    data = data.map(lambda x: tf.ensure_shape(tf.numpy_function(slowly, [x], tf.float32), [8, 4]))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data.map(lambda x: (x, x[:, :1])), epochs=2, verbose=0)  # the line of fit of input_bound


def prefetched():
    def batches():  # the line of prefetched
        while True:
            time.sleep(0.01)
            yield np.ones((16, 8), "float32"), np.ones((16, 1), "float32")

    signature = (tf.TensorSpec((16, 8)), tf.TensorSpec((16, 1)))
    data = tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, steps_per_epoch=60, verbose=0)


def grows():
    results = []

    @tf.function
    def doubled(x):
        return x * 2.0  # the line of grows

    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        results.append(doubled(tf.ones([500_000])))
        time.sleep(0.2)


def retraced():
    @tf.function
    def scaled(x, factor):
        for _ in range(10):
            x = tf.tanh(x) * factor  # the line of retraced
        return x

    for number in range(40):
        scaled(tf.ones([8]), 0.1 * number)


def small():
    weights = [tf.Variable(tf.ones([4])) for _ in range(80)]

    @tf.function
    def tiny(x):
        for weight in weights:
            x = tf.nn.relu(x * weight - 0.5)  # the line of small
        return x

    for _ in range(60):
        tiny(tf.ones([4]))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
