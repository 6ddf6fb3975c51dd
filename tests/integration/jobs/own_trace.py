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
all_metadata = []
with tf.Session() as session:
    all_metadata.append(tf.RunMetadata())
    session.run(tf.global_variables_initializer(), options=tf.RunOptions(trace_level=1), run_metadata=all_metadata[-1])
    for _ in range(6):
        all_metadata.append(tf.RunMetadata())
        session.run([train, looped], feed, options=tf.RunOptions(trace_level=1), run_metadata=all_metadata[-1])
profiler = tf.profiler.Profiler(session.graph)
for number, metadata in enumerate(all_metadata):
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
        "occurrence": sum(graph_node.run_count for graph_node in node.graph_nodes),
        "micros": sum(graph_node.exec_micros for graph_node in node.graph_nodes),
        "bytes": sum(graph_node.requested_bytes for graph_node in node.graph_nodes),
        "peak_bytes": sum(graph_node.peak_bytes for graph_node in node.graph_nodes),
        "output_bytes": sum(graph_node.output_bytes for graph_node in node.graph_nodes),
    }
with open(sys.argv[1], "w") as file:
    json.dump(ops, file)
