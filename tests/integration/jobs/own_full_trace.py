"""Calls of a function, then session runs with the user's own full trace.

A full trace needs a profiler session, and a process has only one at a time.
"""

import sys

import tensorflow as tf

tf1 = tf.compat.v1


@tf.function
def double(value):
    return value * 2.0


print([float(double(tf.constant(float(number)))) for number in range(4)])
with tf1.Graph().as_default(), tf1.Session() as session:
    metadata = tf1.RunMetadata()
    total = tf.reduce_sum(tf.ones((8, 8)))
    for _ in range(2):
        print(session.run(total, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata))
    print(len(metadata.step_stats.dev_stats) > 0)
print("ready", flush=True)
sys.stdin.readline()
