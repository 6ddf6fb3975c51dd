"""Runs under TensorFlow 1.15 or 2.x: writes options and answers of the TF profiler.

The options come from ProfileOptionBuilder.

    python options.py FOLDER

FOLDER gets `graph.pb`, `run-0.pb`, and `answers.json`: {dicts: {name: options}, calls: [{view,
options, out, err, name, children}]}.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as tf
from built_options import built_options

Builder = tf.profiler.ProfileOptionBuilder
#: Questions for which the TF profiler prints text around the report, or instead of the report.
QUESTIONS = [
    ("scope", {}),
    ("op", {"select": ["occurrence", "bytes"], "order_by": "bytes", "output": "stdout:"}),
    ("op", {"max_depth": 2, "hide_name_regexes": ["a,b", "c"], "account_displayed_op_only": True, "output": ""}),
    ("graph", {"step": 9}),
    ("op", {"step": 9, "output": "none"}),
    ("op", {"output": "foo"}),
    ("scope", {"output": "foo:a=b"}),
    ("op", {"output": "file"}),
    ("graph", {"output": "timeline:"}),
    ("op", {"output": "file:outfile"}),
    ("op", {"output": "file:outfile=x,foo"}),
    ("op", {"output": "file:zz=1,aa=2"}),
    ("op", {"output": "none:outfile=x"}),
    ("op", {"output": "pprof:outfile=x"}),
    ("scope", {"output": "pprof:outfile=x"}),
    ("op", {"output": "timeline:outfile=x"}),
    ("scope", {"account_type_regexes": ["Nothing"], "min_bytes": -5}),
    ("graph", {"max_depth": -1, "order_by": ""}),
    ("op", {"select": [], "show_name_regexes": []}),
]


def capture(call):
    """Return (standard output, standard error, result) of ``call``, including the output of C++."""
    import ctypes

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        saved = os.dup(1), os.dup(2)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            result = call()
        finally:
            ctypes.CDLL(None).fflush(None)
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
        out.seek(0)
        err.seek(0)
        return out.read().decode(), err.read().decode(), result


def main():
    """Trace a step, ask the questions, write the answers."""
    folder = Path(sys.argv[1])
    tf.disable_v2_behavior()
    images = tf.placeholder(tf.float32, [2, 3], name="net/images")
    loss = tf.reduce_sum(tf.matmul(images, tf.constant([[1.0], [2.0], [3.0]], name="net/weights"), name="net/MatMul"))
    graph = tf.get_default_graph()
    (folder / "graph.pb").write_bytes(graph.as_graph_def(add_shapes=True).SerializeToString())
    profiler = tf.profiler.Profiler(graph)
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE)
        session.run(loss, {images: [[1, 2, 3], [4, 5, 6]]}, options=options, run_metadata=metadata)
    profiler.add_step(0, metadata)
    (folder / "run-0.pb").write_bytes(metadata.SerializeToString())
    methods = {"scope": profiler.profile_name_scope, "graph": profiler.profile_graph, "op": profiler.profile_operations}
    answers = []
    for view, changes in QUESTIONS:
        options = dict(Builder().build(), **changes)
        out, err, root = capture(lambda view=view, options=options: methods[view](options))
        answers.append(
            {
                "view": view,
                "options": options,
                "out": out,
                "err": err,
                "name": root.name,
                "children": len(root.children),
            }
        )
    (folder / "answers.json").write_text(json.dumps({"dicts": built_options(Builder), "calls": answers}))


if __name__ == "__main__":
    main()
