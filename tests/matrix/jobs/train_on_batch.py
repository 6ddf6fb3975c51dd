"""Keras, one call per batch: ten training batches, six test batches, six prediction batches."""

import numpy as np
import tensorflow as tf
from _shared import keras_of, report

keras = keras_of(tf)
x, y = np.ones([8, 64], "float32"), np.zeros([8, 1], "float32")
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
for _ in range(10):
    model.train_on_batch(x, y)
for _ in range(6):
    model.test_on_batch(x, y)
    model.predict_on_batch(x)
steps = {"batch": 10, "test_batch": 6, "predict_batch": 6}
if tf.__version__.startswith("1."):
    steps.update(train=10, runs=None)
report(**steps)
