"""A training loop by hand around a tf.function: ten steps."""

import tensorflow as tf
from _told import told

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()
w = tf.Variable(tf.ones([64, 64]))


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
    w.assign_sub(0.01 * tape.gradient(loss, w))


for _ in range(10):
    step(tf.ones([8, 64]))
told(function=10)
