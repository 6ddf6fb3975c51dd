"""MirroredStrategy over two CPUs: ten steps of a hand-written loop, then a fit of ten batches."""

import numpy as np
import tensorflow as tf
from _shared import keras_of, report

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()
config = tf.config.experimental
(cpu,) = config.list_physical_devices("CPU")
config.set_virtual_device_configuration(cpu, [config.VirtualDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
keras = keras_of(tf)
with strategy.scope():
    w = tf.Variable(tf.ones([64, 64]))
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")


@tf.function
def step(x):
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2
    return strategy.reduce(tf.distribute.ReduceOp.SUM, run(lambda: tf.reduce_sum(tf.matmul(x, w))), axis=None)


print([float(step(tf.ones([8, 64]))) for _ in range(10)])
x, y = np.ones([80, 64], "float32"), np.zeros([80, 1], "float32")
model.fit(x, y, batch_size=8, shuffle=False, verbose=0)
report({"fit": 1, "epoch": 1}, function=10, batch=10)
