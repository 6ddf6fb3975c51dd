"""A hand-written training loop around a tf.function: ten steps."""

import tensorflow as tf
from _shared import report

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
report(function=10)
