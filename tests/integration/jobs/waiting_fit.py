"""A Keras fit that waits for its input: python waiting_fit.py PACKAGE.

Each of 12 batches takes 100 ms to make.
"""

import importlib
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

keras = importlib.import_module(sys.argv[1])


def batches():
    """Yield the batches."""
    for _ in range(12):
        time.sleep(0.1)
        yield np.ones((8, 4), "float32"), np.ones((8, 1), "float32")


shapes = (tf.TensorShape((8, 4)), tf.TensorShape((8, 1)))
data = tf.data.Dataset.from_generator(batches, (tf.float32, tf.float32), shapes)
model = keras.Sequential([keras.layers.InputLayer((4,)), keras.layers.Dense(16), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, epochs=1, steps_per_epoch=12, verbose=0)
