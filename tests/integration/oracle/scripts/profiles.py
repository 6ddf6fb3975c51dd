"""Runs under TensorFlow 1.15 or 2.x: writes profiles and op logs of the TF profiler.

    python profiles.py cases CASES OUT

For each case in CASES whose profile TensorFlow can write, a folder of the same name in OUT gets
`profile.pb`, and `reloaded.pb`: this profile after TensorFlow has read and written it.

    python profiles.py run OUT

OUT gets the files of a small net with functions, loops and odd constants: `graph.pb` and
`run-N.pb`, both also as text, `tfprof_log` and `profile.pb`.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    from tensorflow.python.util import _pywrap_tfprof as native
except ImportError:
    from tensorflow.python import pywrap_tensorflow as native

STEPS = 3


def read(*parts):
    """Return the content of a file, b"" if it does not exist."""
    path = os.path.join(*parts)
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def write(folder, name, data):
    """Write bytes or text as a file."""
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def reload_profile(path):
    """Return the profile at a path after TensorFlow has read and written it."""
    native.DeleteProfiler()
    native.ProfilerFromFile(path.encode() if sys.version_info < (3, 8) else path)
    data = native.SerializeToString()
    native.DeleteProfiler()
    return data


def write_case(folder, out):
    """Write the profiles of a case.

    TensorFlow cannot write them if the graph lacks the node of an input.
    """
    if not json.loads(read(folder, "queries.json"))["whole"]:
        return
    os.makedirs(out)
    native.NewProfiler(read(folder, "graph.pb"), read(folder, "op_log.pb"))
    step = 0
    while os.path.exists(os.path.join(folder, f"run-{step}.pb")):
        native.AddStep(step, b"", read(folder, f"run-{step}.pb"), b"")
        step += 1
    write(out, "profile.pb", native.SerializeToString())
    write(out, "reloaded.pb", reload_profile(os.path.join(out, "profile.pb")))


def build(tf):
    """Return a placeholder and the fetches of a step.

    The graph has functions, a loop, a branch, a dataset, constants of many types, and gradients.
    """
    import numpy as np
    from tensorflow.python.framework import function

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


def write_run(out):
    """Trace a few steps of a net and write all its files."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    batch, fetches = build(tf)
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


def main():
    """Run the subcommand of the command line."""
    kind, *paths = sys.argv[1:]
    if kind == "run":
        write_run(*paths)
        return
    cases, out = paths
    for name in sorted(os.listdir(cases)):
        write_case(os.path.join(cases, name), os.path.join(out, name))


if __name__ == "__main__":
    main()
