"""Multiplies matrices on one line: python python_lines.py session|function."""

import sys

import numpy as np
import tensorflow as tf

SIZE = 64


def product(matrix, weights):
    return tf.matmul(matrix, weights)  # here


def difference(weights):
    return tf.subtract(weights, 1.0, name="later")  # later


def in_session():
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    weights = v1.get_variable("weights", [SIZE, SIZE])
    matrix = v1.placeholder(tf.float32, [SIZE, SIZE])
    loss = tf.reduce_mean(tf.square(product(matrix, weights)))
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(5):
            session.run(train, {matrix: np.ones([SIZE, SIZE])})
        session.run(difference(weights))


def in_function():
    weights = tf.Variable(tf.ones([SIZE, SIZE]))

    @tf.function
    def step(matrix):
        with tf.GradientTape() as tape:
            for _ in tf.range(3):
                matrix = product(matrix, weights)
            loss = tf.reduce_mean(matrix)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    for _ in range(5):
        step(tf.ones([SIZE, SIZE]))


if __name__ == "__main__":
    {"session": in_session, "function": in_function}[sys.argv[1]]()
