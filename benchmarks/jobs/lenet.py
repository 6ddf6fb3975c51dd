"""Trains LeNet in a session, for the number of batches in argv[1], with one thread for the ops."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
random = np.random.RandomState(0)


def _weights(*shape):
    values = random.randn(*shape).astype("float32") * 0.05
    return v1.get_variable("weights_%d" % len(v1.global_variables()), initializer=values)


def _convolution(inputs, channels_in, channels):
    outputs = tf.nn.conv2d(inputs, _weights(5, 5, channels_in, channels), [1, 1, 1, 1], "SAME")
    return v1.nn.max_pool(tf.nn.relu(outputs), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")


images = tf.constant(random.randn(32, 28, 28, 1).astype("float32"))
labels = tf.constant(random.randint(0, 10, 32))
hidden = tf.reshape(_convolution(_convolution(images, 1, 32), 32, 64), (32, 7 * 7 * 64))
logits = tf.matmul(tf.nn.relu(tf.matmul(hidden, _weights(7 * 7 * 64, 512))), _weights(512, 10))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
train = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
one_thread = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
with v1.Session(config=one_thread) as session:
    session.run(v1.global_variables_initializer())
    for batch in range(int(sys.argv[1])):
        session.run([train, loss] if batch % 10 == 9 else train)
