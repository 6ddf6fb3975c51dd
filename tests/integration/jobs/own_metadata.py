"""Trains in sessions whose every run requests RunMetadata: own_metadata.py [debug]."""

import sys
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
inputs = tf.placeholder(tf.float32, [None, 6])
weights = tf.get_variable("weights", [6, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(inputs, weights) - 1.0))
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
session = tf.Session()
session.run(tf.global_variables_initializer())
request = {"options": tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), "run_metadata": tf.RunMetadata()}
if "debug" in sys.argv:
    from tensorflow.python import debug

    session, request = debug.DumpingDebugWrapperSession(session, tempfile.mkdtemp() + "/dump", log_usage=False), {}
for _ in range(12):
    session.run([loss, train], {inputs: np.full([4, 6], 0.1, "float32")}, **request)
