"""Runs under TensorFlow 1.15 or 2.x: asks the TF profiler for code views and pprof files.

    python code_view.py FOLDER random|real SEED CASES

FOLDER gets a folder for each case, with `graph.pb`, `oplog.pb`, `run-0.pb`, …, and `queries.json`:
{lost, queries: [{options, text, proto, pprof}]}, with bytes as Latin-1 text. `lost` is the number
of gradient nodes without a forward node.
"""

import json
import os
import random
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.profiler import tfprof_log_pb2, tfprof_options_pb2

try:
    from tensorflow.python import pywrap_tensorflow as native

    native.NewProfiler  # noqa: B018  # later versions have moved it
except (ImportError, AttributeError):
    from tensorflow.python.util import _pywrap_tfprof as native
from tensorflow.python.profiler import tfprof_logger

QUERIES = 26
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
STREAM = "/device:GPU:0/stream:all"
OPS = ["Conv2D", "MatMul", "VariableV2", "Relu", "Conv2DBackpropFilter", "NoOp"]
FILES = [
    "train.py",
    "/home/a/train.py",
    "/home/b/train.py",
    "lib/ops.v2.py",
    "",
    "dir/",
    "noext",
    "gs://bucket",
    "gs://bucket/m.py",
]
FILES += ["s3://", "x://y", "<stdin>", "/one.py", "/home/.hidden", "/tmp/é/modèle.py"]
FUNCTIONS = [
    "main",
    "<module>",
    "",
    "build",
    "build_of_19_letters",
    "build_of_20_letterss",
    "a_function_with_a_long_name",
]
FUNCTIONS += [
    "une_opération_à_cœur",
    "ééééééééééééé",
    "aéééééééééééé",
    "call (gradient)",
    "日本語の関数名です",
    "α" * 9,
    "α" * 10,
]
SIZES = ["bytes", "peak_bytes", "residual_bytes", "output_bytes"]
COUNTERS = [*SIZES, "micros", "accelerator_micros", "cpu_micros", "params", "float_ops"]
SELECTS = [*COUNTERS, "device", "op_types", "occurrence", "input_shapes"]
ORDERS = ["name", "occurrence", "", "nonsense", *COUNTERS]
TYPES = ["_trainable_variables", "mine", "Conv2D"]
TYPE_PATTERNS = [
    ".*",
    "Conv2D",
    "Conv.*",
    ".*2D",
    ".*gpu.*",
    "mine",
    "_trainable_variables",
    "Nothing",
    ".*cpu:0",
    "Relu|MatMul",
]
NAME_PATTERNS = [
    ".*train.*",
    ".*:main",
    ".*gradient.*",
    "(ops|lib).*",
    ".*build.*",
    "nothing",
    ".*:[0-9]*[02468]:.*",
    "_TFProfRoot",
]


# -- random ----------------------------------------------------------------------------------------


def node_names(rng):
    """Return names of forward and gradient nodes, some of which look like the other kind."""
    forward = ["a", "b", "net/conv", "net/dense", "net/dense/x", "tower_0/conv", "y_grad/z", "loss", "x_grad/a"]
    forward += [f"n{number}" for number in range(rng.randrange(12))]
    names = list(forward)
    for name in rng.sample(forward, rng.randrange(len(forward))):
        scope = rng.choice(["", "", "", "tower_0/", "opt/", "gradients/"])
        names.append("{}gradients/{}_grad/{}".format(scope, name, rng.choice(["", "x", "Reshape/y", "b_grad/c"])))
    names += rng.sample(
        ["gradients/_grad/x", "gradients/lost_grad/x", "gradients/Shape", "x_grad/gradients/a", "y_grad/gradients/b/c"],
        2,
    )
    rng.shuffle(names)
    return list(dict.fromkeys(names))


def random_graph(rng, names):
    """Return a GraphDef of ``names`` whose inputs come before their consumers."""
    graph = tf.GraphDef()
    for at, name in enumerate(names):
        node = graph.node.add(name=name, op=rng.choice(OPS))
        for _ in range(rng.randrange(3) if at else 0):
            node.input.append(rng.choice(["", "^"]) + rng.choice(names[:at]))
        node.input.sort(key=lambda text: text.startswith("^"))
        if rng.random() < 0.3:
            shape = node.attr["shape"].shape
            for size in [rng.choice([-1, 1, 2, 3, 40]) for _ in range(rng.randrange(4))]:
                shape.dim.add(size=size)
        if rng.random() < 0.5:
            shape = node.attr["_output_shapes"].list.shape.add()
            for size in [rng.choice([-1, 2, 3]) for _ in range(rng.randrange(4))]:
                shape.dim.add(size=size)
    return graph


def random_stack(rng, stacks):
    """Return a stack of (file, line, function, start line); most stacks share frames."""
    stack = list(rng.choice(stacks))[: rng.randrange(9)] if stacks and rng.random() < 0.8 else []
    depth = len(stack) + rng.randrange(rng.choice([2, 5, 5, 30]))
    while len(stack) < depth:
        line = rng.choice([-1, 0, 1, 2, 3, 2**31 - 1, -(2**31)]) if rng.random() < 0.3 else rng.randrange(1, 5)
        start = rng.choice([-1, -1, 0, 1, 2])
        stack.append((rng.choice(FILES), line, rng.choice(FUNCTIONS), start))
    return stack


def random_log(rng, names):
    """Return an OpLogProto with stacks, types and float_ops for most of ``names``."""
    log, ids, stacks = tfprof_log_pb2.OpLogProto(), {}, []

    def id_of(text):
        return ids.setdefault(text, len(ids))

    for name in sorted(names, key=lambda name: rng.random()):
        entry = log.log_entries.add(name=name)
        entry.float_ops = rng.choice([0, 0, 5, 10**12])
        entry.types.extend(rng.sample(TYPES, rng.choice([0, 0, 1, 2])))
        if rng.random() < 0.15:
            continue
        stack = random_stack(rng, stacks)
        stacks.append(stack)
        entry.code_def.SetInParent()
        for file, line, function, start in stack:
            entry.code_def.traces.add(
                file_id=id_of(file),
                lineno=line,
                function_id=id_of(function),
                func_start_line=start,
                line_id=id_of(""),
            )
    entry_with_frames = log.log_entries.add(name=names[0])  # the TF profiler crashes if no node has frames
    entry_with_frames.code_def.traces.add(
        file_id=id_of("train.py"), lineno=7, function_id=id_of("main"), line_id=id_of("")
    )
    for text, text_id in ids.items():
        log.id_to_string[text_id] = text
    return log


def random_run(rng, names):
    """Return a RunMetadata in which some nodes run, once or several times, on a CPU or a GPU."""
    run = tf.RunMetadata()
    run.step_stats.SetInParent()
    for device in rng.sample([CPU, GPU, STREAM], rng.randrange(1, 4)):
        stats = run.step_stats.dev_stats.add(device=device)
        for name in rng.choices([*names, "_SINK"], k=rng.randrange(2 * len(names))):
            execution = stats.node_stats.add(
                node_name=name, all_start_micros=rng.choice([0, 10**15 + rng.randrange(10**6)])
            )
            execution.op_end_rel_micros = rng.choice([0, 1, rng.randrange(10**4), rng.randrange(10**7)])
            for allocator in rng.sample(["cpu", "GPU_0_bfc"], rng.randrange(2)):
                memory = execution.memory.add(
                    allocator_name=allocator, total_bytes=rng.randrange(10 ** rng.randrange(1, 8))
                )
                memory.peak_bytes, memory.live_bytes = rng.randrange(10**6), rng.randrange(-1000, 10**6)
            if rng.random() < 0.4:
                sizes = execution.output.add().tensor_description.allocation_description
                sizes.requested_bytes = rng.randrange(10**6)
    return run


def random_case(seed):
    """Return (graph, op log, runs) of one random case."""
    rng = random.Random(seed)
    names = node_names(rng)
    graph = random_graph(rng, names)
    return graph, random_log(rng, names), [random_run(rng, names) for _ in range(rng.randrange(1, 4))]


# -- real ------------------------------------------------------------------------------------------


def layer(inputs, units, name):
    """Return one dense layer."""
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [inputs.shape[-1], units])
        return tf.nn.relu(tf.matmul(inputs, weights) + tf.get_variable("bias", [units]))


def real_case(seed):
    """Train a small net; return (graph, op log with TensorFlow's own stacks, runs)."""
    tf.reset_default_graph()
    rng = np.random.RandomState(seed)
    images = tf.placeholder(tf.float32, [None, 8, 8, 3], "images")
    features = tf.nn.conv2d(images, tf.get_variable("kernel", [3, 3, 3, 4]), strides=[1, 1, 1, 1], padding="SAME")
    hidden = tf.reshape(tf.nn.max_pool(features, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), [-1, 64])
    for depth in range(1 + seed % 4):
        hidden = layer(hidden, 8 + depth, f"layer_{depth}")
    loop = tf.while_loop(lambda i, _x: i < 3, lambda i, x: (i + 1, tf.tanh(x)), (tf.constant(0), hidden))[1]
    loss = tf.reduce_mean(tf.square(loop))
    with tf.name_scope("tower"):
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
    graph, runs = tf.get_default_graph().as_graph_def(add_shapes=True), []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(3):
            run, feed = tf.RunMetadata(), {images: rng.rand(2 + step, 8, 8, 3)}
            session.run(train if step else loss, feed, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run)
            runs.append(run)
    log = tfprof_logger.merge_default_with_oplog(tf.get_default_graph(), None, runs[1], add_trace=True)
    return graph, log, runs


# -- questions -------------------------------------------------------------------------------------


def frame_texts(log):
    """Return the texts of the frames, for patterns."""
    texts = {text_id: text.encode() for text_id, text in log.id_to_string.items()}
    traces = [trace for entry in log.log_entries for trace in entry.code_def.traces]
    return [
        "{}:{}:{}".format(texts[trace.file_id].decode().split("/")[-1], trace.lineno, texts[trace.function_id].decode())
        for trace in traces
    ]


def random_query(rng, texts, steps, has_pprof):
    """Return options by name; most of them have the defaults of the TF profiler."""

    def patterns(default, choices):
        if rng.random() < 0.75:
            return default
        escaped_texts = [
            text.replace("(", "\\(").replace(")", "\\)").replace(".", "\\.")
            for text in rng.sample(texts, min(2, len(texts)))
        ]
        return rng.choice([[], rng.sample(choices, 1), rng.sample(choices, 2), escaped_texts])

    query = {
        "max_depth": rng.choice([1, 2, 3, 4, 6, 10, 100, 100, 100, 100]),
        "step": rng.choice([-1, -1, *range(steps)]),
    }
    query["order_by"] = rng.choice(["name", *ORDERS])
    query["account_type_regexes"] = patterns([".*"], TYPE_PATTERNS)
    query["start_name_regexes"] = patterns([".*"], NAME_PATTERNS)
    query["show_name_regexes"] = patterns([".*"], NAME_PATTERNS)
    query["hide_name_regexes"] = patterns([], NAME_PATTERNS)
    query["trim_name_regexes"] = patterns([], [pattern for pattern in NAME_PATTERNS if pattern != "_TFProfRoot"])
    query["account_displayed_op_only"] = rng.random() < 0.1
    for counter in [*COUNTERS, "occurrence"]:
        minimum = rng.choice([1, 2, 10, 1000, -1, 10**5]) if rng.random() < 0.04 else 0
        query["min_" + counter] = minimum
    query["select"] = [rng.choice(COUNTERS)] if has_pprof else rng.sample(SELECTS, rng.choice([1, 1, 2, len(SELECTS)]))
    return query


def answer(folder, query, output):
    """Ask one question; return the message and the content of the output file."""
    output_path = folder / "answer"
    if output_path.exists():
        output_path.unlink()
    options = tfprof_options_pb2.OptionsProto(output=f"{output}:outfile={output_path}", **query)
    proto = native.Profile(b"code", options.SerializeToString())
    return proto, output_path.read_bytes() if output_path.exists() else b""


def write_case(folder, rng, graph, log, runs):
    """Write one case and its answers."""
    folder.mkdir()
    (folder / "graph.pb").write_bytes(graph.SerializeToString())
    (folder / "oplog.pb").write_bytes(log.SerializeToString())
    native.NewProfiler(graph.SerializeToString(), log.SerializeToString())
    for step, run in enumerate(runs):
        (folder / f"run-{step}.pb").write_bytes(run.SerializeToString())
        native.AddStep(step, b"", run.SerializeToString(), b"")
    log_file, stderr = (folder / "stderr").open("w+b"), os.dup(2)
    os.dup2(log_file.fileno(), 2)
    queries, texts = [], frame_texts(log)
    for number in range(QUERIES):
        query = random_query(rng, texts, len(runs), number % 2)
        proto, text = answer(folder, query, "file")
        profile = answer(folder, query, "pprof")[1] if number % 2 else b""
        bytes_ = {"text": text, "proto": proto, "pprof": profile}
        queries.append(dict({key: value.decode("latin-1") for key, value in bytes_.items()}, options=query))
    os.dup2(stderr, 2)
    native.DeleteProfiler()
    log_file.seek(0)
    lost_counts = [
        line.split()[0]
        for line in log_file.read().decode("utf-8", "replace").splitlines()
        if "gradient nodes not" in line
    ]
    (folder / "queries.json").write_text(
        json.dumps({"lost": int(lost_counts[0]) if lost_counts else 0, "queries": queries})
    )


def main():
    """Write all cases."""
    folder, kind, seed, cases = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    tf.disable_v2_behavior()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # the TF profiler prints the paths of its files
    for case in range(seed, seed + cases):
        write_case(
            folder / f"case-{case}", random.Random(-case), *{"random": random_case, "real": real_case}[kind](case)
        )


if __name__ == "__main__":
    main()
