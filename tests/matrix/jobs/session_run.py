"""A loop of Session.run: an initializer and ten steps."""

import numpy as np
import tensorflow.compat.v1 as tf
from _shared import report

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [8, 64])
w = tf.get_variable("w", [64, 64])
train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(tf.matmul(x, w) ** 2))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(10):
        session.run(train, {x: np.ones([8, 64])})
report(init=1, train=10)
