"""Keras in graph mode: a fit, an evaluation and a prediction.

The fit has two epochs of ten batches, with validation on two batches.
"""

import numpy as np
import tensorflow as tf
from _shared import keras_of, report

tf.compat.v1.disable_eager_execution()
keras = keras_of(tf)
x, y = np.ones([80, 64], "float32"), np.zeros([80, 1], "float32")
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, batch_size=8, epochs=2, validation_data=(x[:16], y[:16]), shuffle=False, verbose=0)
model.evaluate(x, y, batch_size=16, verbose=0)
model.predict(x, batch_size=16, verbose=0)
report(
    {"fit": 1, "epoch": 2, "evaluate": 3, "predict": 1},
    batch=20,
    test_batch=2 * 2 + 5,
    predict_batch=5,
    train=20,
    runs=None,
)
