"""Runs under TensorFlow 1.15 or 2.x: writes a profile and an op log of the TF profiler.

    python profiles.py OUT

OUT gets the files of a small net with functions, loops and odd constants: `graph.pb` and
`run-N.pb`, both also as text, `tfprof_log` and `profile.pb`.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function

STEPS = 3


def write(folder, name, data):
    """Write bytes or text as a file."""
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def build():
    """Return a placeholder and the fetches of a step.

    The graph has functions, a loop, a branch, a dataset, constants of many types, and gradients.
    """

    @function.Defun(tf.float32)
    def doubled(x):
        return tf.tanh(x) * 2

    batch = tf.placeholder(tf.float32, [None, 4], name="batch")
    weights = tf.get_variable("weights", [4, 4])
    numbers = tf.data.make_one_shot_iterator(tf.data.Dataset.range(10).map(lambda n: n + 1).batch(2)).get_next()
    rows = tf.map_fn(lambda row: row * 2, tf.matmul(doubled(batch), weights))
    total = tf.cond(tf.reduce_sum(rows) > 0, lambda: tf.reduce_sum(rows), lambda: tf.constant(0.0))
    constants = [
        tf.constant([b"\xff\x00\"q'", b"b"]),
        tf.constant(np.arange(2500.0).reshape(50, 50)),
        tf.constant(np.array([[1, 2], [3, -4]], np.int64)),
        tf.constant(np.array([1.5, float("inf")], np.float16)),
        tf.constant([1 + 2j]),
    ]
    return batch, [rows, total, numbers, tf.gradients(total, weights), *constants]


def main():
    """Trace a few steps of a net and write all its files."""
    out = sys.argv[1]
    tf.disable_v2_behavior()
    batch, fetches = build()
    initializer = tf.global_variables_initializer()
    graph = tf.get_default_graph()
    definition = graph.as_graph_def(add_shapes=True)
    write(out, "graph.pb", definition.SerializeToString())
    write(out, "graph.pbtxt", str(definition))
    profiler = tf.profiler.Profiler(graph)
    with tf.Session() as session:
        session.run(initializer)
        for step in range(STEPS):
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
            session.run(fetches, {batch: np.ones((3, 4))}, options=options, run_metadata=metadata)
            profiler.add_step(step, metadata)
            write(out, f"run-{step}.pb", metadata.SerializeToString())
            write(out, f"run-{step}.pbtxt", str(metadata))
    write(out, "profile.pb", profiler.serialize_to_string())
    tf.profiler.write_op_log(graph, out)


if __name__ == "__main__":
    main()
