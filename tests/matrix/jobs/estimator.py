"""An Estimator that is trained and evaluated."""

import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from _shared import counted_runs, report

tf.logging.set_verbosity(tf.logging.ERROR)
runs = counted_runs()
images, labels = np.ones([80, 64], "float32"), np.zeros([80, 1], "float32")


def data():
    return tf.data.Dataset.from_tensor_slices(({"x": images}, labels)).batch(8)


with tempfile.TemporaryDirectory() as folder:
    estimator = tf.estimator.LinearRegressor([tf.feature_column.numeric_column("x", [64])], folder)
    estimator.train(data)
    result = estimator.evaluate(data)
print("global step", result["global_step"])
# The last run of training finds no more data.
report(train=int(result["global_step"]) + 1, runs=len(runs))
