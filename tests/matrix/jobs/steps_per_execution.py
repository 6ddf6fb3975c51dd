"""Keras with four batches per call: a fit of two epochs of ten batches."""

import numpy as np
import tensorflow as tf
from _shared import keras_of, report

keras = keras_of(tf)
x, y = np.ones([80, 64], "float32"), np.zeros([80, 1], "float32")
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse", steps_per_execution=4)
model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
report({"fit": 1, "epoch": 2}, batch=20)
