"""Traces its own runs: python own_trace.py FILE.

FILE gets the TF profiler's run count, micros and bytes of each op type.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
images = tf.placeholder(tf.float32, [None, 16, 16, 3], "images")
kernel = tf.get_variable("kernel", [3, 3, 3, 8])
hidden = tf.nn.relu(tf.nn.conv2d(images, kernel, strides=1, padding="SAME"))
looped = tf.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 0.5), [tf.constant(0), tf.reduce_mean(hidden)])[1]
train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(looped)
feed = {images: np.ones([4, 16, 16, 3], np.float32)}
kept = []
with tf.Session() as session:
    kept.append(tf.RunMetadata())
    session.run(tf.global_variables_initializer(), options=tf.RunOptions(trace_level=1), run_metadata=kept[-1])
    for _ in range(6):
        kept.append(tf.RunMetadata())
        session.run([train, looped], feed, options=tf.RunOptions(trace_level=1), run_metadata=kept[-1])
profiler = tf.profiler.Profiler(session.graph)
for number, metadata in enumerate(kept):
    profiler.add_step(number, metadata)
options = dict(
    tf.profiler.ProfileOptionBuilder.time_and_memory(), output="none", order_by="name", min_micros=0, min_bytes=0
)
options.update(min_accelerator_micros=0, min_cpu_micros=0, min_peak_bytes=0, min_residual_bytes=0, min_output_bytes=0)
node = profiler.profile_operations(options)
ops = {}
while node.children:
    node = node.children[0]
    ops[node.name] = {
        "occurrence": sum(one.run_count for one in node.graph_nodes),
        "micros": sum(one.exec_micros for one in node.graph_nodes),
        "bytes": sum(one.requested_bytes for one in node.graph_nodes),
        "peak_bytes": sum(one.peak_bytes for one in node.graph_nodes),
        "output_bytes": sum(one.output_bytes for one in node.graph_nodes),
    }
with open(sys.argv[1], "w") as file:
    json.dump(ops, file)
