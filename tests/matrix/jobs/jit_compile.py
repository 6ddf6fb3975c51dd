"""A hand-written training loop around a tf.function that XLA compiles: ten steps."""

import tensorflow as tf
from _shared import report

w = tf.Variable(tf.ones([64, 64]))


def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
    w.assign_sub(0.01 * tape.gradient(loss, w))


options = {"experimental_compile" if tf.__version__.startswith("2.4") else "jit_compile": True}
step = tf.function(step, **options)
for _ in range(10):
    step(tf.ones([8, 64]))
report(function=10)
