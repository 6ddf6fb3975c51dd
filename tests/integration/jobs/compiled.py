"""A training loop that XLA compiles, in a function or in a session: python compiled.py KIND.

KIND ``shapes``: the batches of the function have two sizes.
"""

import sys

import numpy as np
import tensorflow as tf

KIND = sys.argv[1]
v1 = tf.compat.v1


def function(sizes=(8,)):
    weights = tf.Variable(tf.ones((64, 64)))

    @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, 64])])
    def train_step(inputs):
        hidden = tf.nn.relu(tf.matmul(inputs, weights) * 2.0)
        weights.assign_sub(0.01 * tf.ones((64, 64)))
        return tf.reduce_sum(hidden)

    for number in range(30):
        train_step(tf.ones((sizes[number % len(sizes)], 64)))


def shapes():
    function((256, 1))


def session():
    inputs = v1.placeholder(tf.float32, (8, 64))
    weights = v1.get_variable("weights", (64, 64))
    with tf.xla.experimental.jit_scope():
        loss = tf.reduce_sum(tf.nn.relu(tf.matmul(inputs, weights) * 2.0))
    with v1.Session() as tf_session:
        tf_session.run(v1.global_variables_initializer())
        for _ in range(30):
            tf_session.run(loss, {inputs: np.ones((8, 64))})


{"function": function, "shapes": shapes, "session": session}[KIND]()
