"""A training loop of eager ops, without any function: ten steps that only the job knows of."""

import tensorflow as tf
from _told import told

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()
w = tf.Variable(tf.ones([64, 64]))
for _ in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(tf.ones([8, 64]), w) ** 2)
    w.assign_sub(0.01 * tape.gradient(loss, w))
told(eager=10)
