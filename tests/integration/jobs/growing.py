"""A loop over 4, 8 and 16 rows: python growing.py old|new, the version of control flow."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
if sys.argv[1] == "old":
    tf.disable_control_flow_v2()
x = tf.placeholder(tf.float32, [4, 8], "x")
weights = tf.constant(np.ones([8, 8], "float32"))


def body(turn, rows):
    product = tf.matmul(rows, weights, name="turn")
    square = tf.matmul(product, product, transpose_b=True, name="square")
    total, mean = tf.reduce_sum(product, name="total"), tf.reduce_mean(square, name="mean")
    return turn + 1, tf.concat([product * 0.01 + total + mean, product], 0)


shapes = [tf.TensorShape([]), tf.TensorShape([None, 8])]
grown = tf.while_loop(lambda turn, _: turn < 3, body, [tf.constant(0), x], shape_invariants=shapes)[1]
with tf.Session() as session:
    for _ in range(3):
        session.run(grown, {x: np.ones([4, 8])})
