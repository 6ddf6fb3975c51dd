"""A small net in a session, which gets batches of 4, 9 and 9 through a placeholder of unknown size.

Its last layer runs three times in a loop.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
images = tf.placeholder(tf.float32, [None, 16, 16, 3], "images")
kernel = tf.get_variable("kernel", [3, 3, 3, 8])
convolved = tf.nn.conv2d(images, kernel, strides=[1, 2, 2, 1], padding="VALID", name="conv")
flat = tf.reshape(convolved, [-1, 7 * 7 * 8])
hidden = tf.matmul(flat, tf.get_variable("weights", [7 * 7 * 8, 10]), name="dense")
square = tf.get_variable("square", [10, 10])
looped = tf.while_loop(
    lambda i, _: i < 3, lambda i, x: (i + 1, tf.matmul(x, square, name="turn")), [tf.constant(0), hidden]
)[1]
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(looped))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for batch in (4, 9, 9):
        session.run(train, {images: np.ones([batch, 16, 16, 3], np.float32)})
