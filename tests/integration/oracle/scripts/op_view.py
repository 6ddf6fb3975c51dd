"""Runs under TensorFlow 1.15 or 2.x: asks the TF profiler for op views of real or random steps.

    python op_view.py FOLDER software|full|random

FOLDER gets `graph.pb`, `run-0.pb`, …, and `queries.json`: a list of {options, text, root, entries}.
"""

import json
import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow.compat.v1 as tf

STEPS = 4
COUNTERS = (
    "exec_micros",
    "accelerator_exec_micros",
    "cpu_exec_micros",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "parameters",
)
DEVICES = (
    "/job:localhost/replica:0/task:0/device:CPU:0",
    "/job:localhost/replica:0/task:0/device:GPU:0",
    "/job:localhost/replica:0/task:0/device:GPU:1",
    "/job:localhost/replica:0/task:0/device:XLA_GPU:0",
    "/job:worker/replica:0/task:1/cpu:0",
    "/device:GPU:0/stream:all",
    "/device:GPU:1/stream:all",
    "/device:GPU:0/stream:14",
    "/device:GPU:0/memcpy",
    "/host:CPU",
)
#: Names of nodes that are not in the graph.
UNKNOWN_NAMES = ("RecvTensor", "_SOURCE", "_SINK", "MEMCPYHtoD", "edge_5_x", "_arg_images_0_0", "made/up")
BASE = {
    "max_depth": 10000,
    "min_bytes": 0,
    "min_peak_bytes": 0,
    "min_residual_bytes": 0,
    "min_output_bytes": 0,
    "min_micros": 0,
    "min_accelerator_micros": 0,
    "min_cpu_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "step": -1,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": False,
    "select": ["micros"],
}
QUERIES = [
    {},
    {"select": ["bytes", "peak_bytes", "residual_bytes", "output_bytes", "micros", "params", "device", "occurrence"]},
    {"order_by": "micros", "select": ["micros", "bytes", "occurrence"]},
    {"order_by": "bytes", "min_bytes": 1, "select": ["bytes", "cpu_micros"]},
    {"order_by": "occurrence", "min_occurrence": 2, "select": ["occurrence", "accelerator_micros"]},
    {"order_by": "peak_bytes", "max_depth": 3, "select": ["peak_bytes"]},
    {"order_by": "params", "min_params": 1, "select": ["params"]},
    {"order_by": "output_bytes", "account_displayed_op_only": True, "max_depth": 5, "select": ["output_bytes"]},
    {"account_type_regexes": ["Conv.*", "Mat.*", ".*Conv2D"], "order_by": "micros", "select": ["micros", "bytes"]},
    {"account_type_regexes": [".*gpu:.*"], "order_by": "accelerator_micros", "select": ["micros", "device"]},
    {"account_type_regexes": [".*cpu:0"], "select": ["micros", "occurrence"]},
    {"account_type_regexes": ["Nothing"], "select": ["micros"]},
    {"account_type_regexes": [], "select": ["micros"]},
    {"start_name_regexes": ["MatMul"], "trim_name_regexes": ["Sh.*"], "select": ["micros", "residual_bytes"]},
    {"start_name_regexes": ["Nothing"], "select": ["micros"]},
    {"start_name_regexes": [], "select": ["micros"]},
    {"show_name_regexes": ["Conv2D.*", "MatMul"], "hide_name_regexes": [".*Filter"], "select": ["micros"]},
    {"show_name_regexes": ["Conv2D.*"], "account_displayed_op_only": True, "select": ["micros", "occurrence"]},
    {"show_name_regexes": [], "select": ["micros"]},
    {"step": 2, "order_by": "micros", "select": ["micros", "bytes", "occurrence"]},
    {"step": 0, "min_micros": 5, "order_by": "cpu_micros", "select": ["micros"]},
    {"min_micros": 20, "order_by": "name", "select": ["micros"]},
    {"order_by": "micros", "select": ["input_shapes", "micros", "occurrence"]},
]


def build():
    """Build a conv net with a loop; return (images, labels, initializer, fetches of a step)."""
    images = tf.placeholder(tf.float32, [None, 12, 12, 3], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    kernel = tf.get_variable("conv/kernel", [3, 3, 3, 8])
    features = tf.nn.relu(tf.nn.conv2d(images, kernel, strides=[1, 1, 1, 1], padding="SAME", name="conv/Conv2D"))
    features = tf.nn.max_pool(features, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    flat = tf.reshape(features, [-1, 6 * 6 * 8])
    weights = tf.get_variable("dense/kernel", [6 * 6 * 8, 10])
    bias = tf.get_variable("dense/bias", [10])
    logits = tf.matmul(flat, weights) + bias
    loop = tf.while_loop(lambda i, _x: i < 3, lambda i, x: (i + 1, tf.tanh(x)), (tf.constant(0), logits))[1]
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=loop))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return images, labels, tf.global_variables_initializer(), [train, loss]


def new_profiler(folder):
    """Write the graph before the profiler fills in shapes; return the profiler."""
    graph = tf.get_default_graph()
    (folder / "graph.pb").write_bytes(graph.as_graph_def(add_shapes=True).SerializeToString())
    return tf.profiler.Profiler(graph)


def trace(folder, level):
    """Trace the steps, write the graph and each RunMetadata; return a profiler with all steps."""
    images, labels, initializer, fetches = build()
    random = np.random.RandomState(0)
    profiler = new_profiler(folder)
    with tf.Session() as session:
        session.run(initializer)
        for step in range(STEPS):
            batch = 4 + 2 * step
            feed = {images: random.rand(batch, 12, 12, 3), labels: random.randint(0, 10, batch)}
            step_fetches = fetches[1:] if step == 1 else fetches
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=level)
            session.run(step_fetches, feed, options=options, run_metadata=metadata)
            profiler.add_step(step, metadata)
            (folder / f"run-{step}.pb").write_bytes(metadata.SerializeToString())
    return profiler


def fill_node(random, stats, name):
    """Fill in one random execution of a node."""
    stats.node_name = name + random.choice(["", "", ":Label", ":a:b"])
    stats.all_start_micros = random.choice([0, 1, 10**15]) and 10**15 + random.randint(10**6)
    stats.op_end_rel_micros = random.choice([0, 1, random.randint(1, 5000)])
    if random.rand() < 0.7:  # nanoseconds that agree with the microseconds or contradict them
        stats.all_start_nanos = 1000 * stats.all_start_micros + random.randint(1000)
        stats.op_start_rel_nanos = random.randint(100)
        stats.op_end_rel_nanos = random.choice([1000 * stats.op_end_rel_micros, random.randint(10**6)])
    for allocator in random.choice(["cpu", "GPU_0_bfc", "gpu_host_bfc"], random.randint(3)):
        memory = stats.memory.add(allocator_name=allocator, total_bytes=int(random.randint(10**6)))
        memory.peak_bytes, memory.live_bytes = int(random.randint(10**6)), int(random.randint(-(10**6), 10**6))
    # TensorFlow looks up each node that has outputs in its graph, and fails on a name with a colon.
    output_count = 0 if ":" in stats.node_name else random.randint(3)
    for slot in range(output_count):
        output = stats.output.add(slot=slot)
        if random.rand() < 0.8:
            sizes = output.tensor_description.allocation_description
            sizes.requested_bytes, sizes.allocated_bytes = (int(n) for n in random.randint(0, 10**6, 2))
    if random.rand() < 0.3:
        stats.memory_stats.temp_memory_size = int(random.randint(10**6))
        stats.memory_stats.persistent_memory_size = int(random.randint(10**6))


def write_random(folder):
    """Write random steps on GPUs, streams and hosts; return a profiler with all steps."""
    build()
    random = np.random.RandomState(1)
    profiler = new_profiler(folder)
    names = [op.name for op in tf.get_default_graph().get_operations()][::3] + list(UNKNOWN_NAMES)
    for step in range(STEPS):
        metadata = tf.RunMetadata()
        for device in random.choice(DEVICES, 6):
            device_stats = metadata.step_stats.dev_stats.add(device=device)
            for name in random.choice(names, 60):
                fill_node(random, device_stats.node_stats.add(), name)
        profiler.add_step(step, metadata)
        (folder / f"run-{step}.pb").write_bytes(metadata.SerializeToString())
    return profiler


def counters(node):
    """Return the own and total counters of a message by name."""
    names = [name for counter in COUNTERS for name in (counter, "total_" + counter) if hasattr(node, name)]
    return {name: getattr(node, name) for name in names}


def answer(profiler, folder, query):
    """Ask the TF profiler one question; return the question and its answer."""
    path = folder / "answer.txt"
    options = dict(dict(BASE, output=f"file:outfile={path}"), **query)
    root = profiler.profile_operations(options)
    entries, node = [], root
    while node.children:
        node = node.children[0]
        nodes = [
            dict(counters(graph_node), name=graph_node.name, run_count=graph_node.run_count)
            for graph_node in node.graph_nodes
        ]
        entries.append(dict(counters(node), name=node.name, graph_nodes=nodes))
    return {"options": query, "text": path.read_text(), "root": counters(root), "entries": entries}


def main():
    """Trace the steps, ask the questions, write the answers."""
    folder = Path(sys.argv[1])
    levels = {"software": tf.RunOptions.SOFTWARE_TRACE, "full": tf.RunOptions.FULL_TRACE}
    tf.disable_v2_behavior()
    profiler = trace(folder, levels[sys.argv[2]]) if sys.argv[2] in levels else write_random(folder)
    answers = [answer(profiler, folder, query) for query in QUERIES]
    (folder / "queries.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
