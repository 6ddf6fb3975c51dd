"""Runs steps of a convolutional network on random images with Session.run, TF 1.15 to 2.21.

Each line of the input contains the number of steps to run. The answer to it is a line of JSON:
total seconds, seconds of each step, and page faults. With `bare` as the second word of the line,
the steps run without the profiler's hooks. With the argument `full`, the script itself traces every
second step.
"""

import json
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf
from _hooks import block

tf.disable_eager_execution()
traces_itself = sys.argv[1:] == ["full"]
tf.set_random_seed(0)
images = tf.placeholder(tf.float32, [None, 28, 28, 1])
labels = tf.placeholder(tf.int64, [None])
hidden = images
for layer in range(6):
    kernel = tf.get_variable("kernel%d" % layer, [3, 3, int(hidden.shape[-1]), 16])
    hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, strides=1, padding="SAME"))
logits = tf.matmul(tf.reduce_mean(hidden, [1, 2]), tf.get_variable("dense", [16, 10]))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
rng = np.random.RandomState(0)
feed = {images: rng.rand(32, 28, 28, 1).astype(np.float32), labels: rng.randint(0, 10, 32)}

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for line in iter(sys.stdin.readline, ""):
        times_s = []
        with block(line) as current_block:
            for step in range(current_block.steps):
                start = time.perf_counter()
                if traces_itself and step % 2:
                    metadata = tf.RunMetadata()
                    session.run([train, loss], feed, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
                else:
                    session.run([train, loss], feed)
                times_s.append(time.perf_counter() - start)
        print(json.dumps({"s": sum(times_s), "steps_s": times_s, "page_faults": current_block.page_faults}), flush=True)
