"""Trains until it is killed, two minutes at most; prints its process id after the first step."""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
weights = tf.get_variable("weights", [64, 64])
loss = tf.reduce_sum(tf.matmul(weights, tf.constant(np.ones([64, 64], np.float32))))
train = tf.train.GradientDescentOptimizer(1e-6).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train)
    print(os.getpid(), flush=True)
    end = time.monotonic() + 120
    while time.monotonic() < end:
        session.run([train, loss])
