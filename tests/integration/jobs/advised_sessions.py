"""Jobs with sessions for `tfprof advise`, without output: advised_sessions.py MODE."""

import sys
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
INPUTS = tf.placeholder(tf.float32, [None, 256])
WEIGHTS = tf.get_variable("weights", [256, 256])
TRAIN = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(tf.square(tf.matmul(INPUTS, WEIGHTS) - 1.0)))
BATCH = {INPUTS: np.ones((16, 256), "float32")}


def alternating(session):
    """Two kinds of runs in turn; the first takes most of the time."""
    actions = INPUTS
    for _ in range(12):
        actions = tf.tanh(tf.matmul(actions, tf.constant(np.full((256, 256), 0.001, "float32"))))
    action = tf.reduce_sum(actions)
    for _ in range(60):
        session.run(action, {INPUTS: np.ones((512, 256), "float32")})
        session.run(TRAIN, {INPUTS: np.ones((512, 256), "float32")})


def initializing(session):
    """An initializer in the loop."""
    output = tf.reduce_sum(tf.matmul(INPUTS, WEIGHTS))
    for _ in range(200):
        session.run(tf.global_variables_initializer())
        session.run(output, BATCH)


def growing(session):
    """Each run adds ops to the graph."""
    vector = tf.placeholder(tf.float32, [64])
    for _ in range(100):
        session.run(tf.reduce_sum(vector * 2.0), {vector: np.ones(64, "float32")})  # the line of growing


def saving(session):
    """A checkpoint after each step."""
    saver, folder = tf.train.Saver(), tempfile.mkdtemp()
    for _ in range(60):
        session.run(TRAIN, BATCH)
        saver.save(session, folder + "/model")


if __name__ == "__main__":
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        globals()[sys.argv[1]](session)
