"""Runs under TensorFlow 1.15 or 2.x: counts the operations of several graphs.

    python float_ops.py FOLDER

Each of FOLDER/kinds, FOLDER/fed, … gets `graph.pb`, `run-0.pb`, …, and `counts.json` with:

- "static" and "filled": the count of each node in TensorFlow's registry, before the first run and
  after the last;
- "steps": {step: {"total", "nodes"}}, the counts of a Profiler that has all steps;
- "once": the counts of the function `profile`, for the graph alone and for the graph with the first
  run.
"""

import json
import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops

raw = tf.raw_ops
UNARY = ("Reciprocal", "Square", "Rsqrt", "Log", "Neg", "Relu", "Tanh", "Sigmoid", "Exp", "Sqrt")
BINARY = ("Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Pow", "SquaredDifference", "AddV2", "FloorDiv")
COMPARISONS = ("GreaterEqual", "Greater", "LessEqual", "Less", "Equal", "NotEqual")


def value(*shape):
    """Return a tensor that the optimizer cannot replace by a constant."""
    return tf.random_uniform(shape, 0.5, 1.5)


def element_wise_results():
    """Yield the results of ops of one and two inputs, some of them broadcast, and of reductions."""
    x, y = value(3, 4, 5), value(4, 1)
    yield from (getattr(raw, kind)(x=x) for kind in UNARY if kind not in {"Relu", "Softplus"})
    yield raw.Relu(features=x)
    yield from (getattr(raw, kind)(x=x, y=y) for kind in (*BINARY, *COMPARISONS))
    yield raw.Add(x=x, y=y)
    yield raw.RsqrtGrad(y=x, dy=x)
    yield tf.nn.softmax(value(7, 9))
    yield tf.nn.l2_loss(x)
    yield tf.add_n([x, x, x])
    with tf.control_dependencies([tf.identity(y)]):
        yield tf.add_n([x, x])
    yield from (reduce(x, 1) for reduce in (tf.reduce_mean, tf.reduce_sum, tf.reduce_max))
    yield tf.reduce_sum(x, [0, 2], keepdims=True)
    yield raw.ArgMax(input=x, dimension=2)
    yield raw.ArgMin(input=x, dimension=0)
    yield raw.Sum(input=value(), axis=tf.zeros([0], tf.int32))
    yield raw.Square(x=value())
    counter = tf.Variable(tf.zeros([2, 3]), use_resource=False)
    yield raw.AssignAdd(ref=counter._variable, value=value(2, 3))
    yield raw.AssignSub(ref=counter._variable, value=value(2, 3))


def products():
    """Yield matrix products, some with transposed factors."""
    a, b = value(6, 5), value(5, 7)
    yield raw.MatMul(a=a, b=b)
    yield raw.MatMul(a=tf.transpose(a), b=b, transpose_a=True)
    yield raw.MatMul(a=a, b=tf.transpose(b), transpose_b=True)
    yield raw.MatMul(a=tf.cast(a, tf.int32), b=tf.cast(b, tf.int32))
    batches, other_batches = value(3, 2, 6, 5), value(3, 2, 5, 7)
    transposed = tf.transpose(batches, [0, 1, 3, 2])
    for kind in ("BatchMatMul", "BatchMatMulV2"):
        yield getattr(raw, kind)(x=batches, y=other_batches)
        yield getattr(raw, kind)(x=transposed, y=other_batches, adj_x=True)
    yield raw.BatchMatMulV2(x=batches, y=value(5, 7))
    if hasattr(raw, "BatchMatMulV3"):
        yield raw.BatchMatMulV3(x=batches, y=other_batches, Tout=tf.float32)
    yield raw.Einsum(inputs=[batches, other_batches], equation="abij,abjk->abik") if hasattr(raw, "Einsum") else batches


def convolutions():
    """Yield a loss of convolutions and poolings, and its gradients."""
    images = value(2, 9, 8, 6)
    kernels = value(3, 3, 6, 4)
    results = []
    for strides, padding in (((1, 1, 1, 1), "SAME"), ((1, 2, 2, 1), "VALID"), ((1, 2, 1, 1), "SAME")):
        results.append(tf.nn.conv2d(images, kernels, strides, padding))
        results.append(tf.nn.depthwise_conv2d(images, value(3, 2, 6, 2), (1, 2, 2, 1), padding))
        results += [pool(images, [1, 3, 2, 1], strides, padding) for pool in (tf.nn.max_pool, tf.nn.avg_pool)]
    results.append(tf.nn.bias_add(images, value(6)))
    results.append(raw.Dilation2D(input=images, filter=value(3, 3, 6), strides=[1] * 4, rates=[1] * 4, padding="SAME"))
    results.append(tf.nn.conv3d(value(2, 5, 6, 7, 3), value(2, 2, 3, 3, 4), [1, 1, 2, 1, 1], "SAME"))
    norm = tf.nn.fused_batch_norm(images, value(6), value(6))[0]
    results.append(norm)
    loss = tf.add_n([tf.reduce_sum(result) for result in results])
    yield loss
    yield from tf.gradients(loss, [images, kernels])


def other_layouts():
    """Return gradients of ops in the layout NCHW.

    TensorFlow does not count such ops, and cannot run them on a CPU.
    """
    images, kernels = value(2, 6, 9, 8), value(3, 3, 6, 4)
    layout = {"data_format": "NCHW"}
    convolved = tf.nn.conv2d(images, kernels, [1, 1, 2, 2], "SAME", **layout)
    pooled = tf.nn.max_pool(convolved, [1, 1, 2, 2], [1, 1, 2, 2], "SAME", **layout)
    averaged = tf.nn.avg_pool(
        tf.nn.bias_add(convolved, value(4), **layout), [1, 1, 2, 2], [1, 1, 1, 1], "SAME", **layout
    )
    return tf.gradients(tf.reduce_sum(pooled) + tf.reduce_sum(averaged), [images, kernels])


def kinds():
    """Build a graph of all kinds of ops; return its steps as (fetches, feed)."""
    fetches = [*element_wise_results(), *products(), *convolutions()]
    other_layouts()
    return [([result.op for result in fetches], {})] * 2


def fed():
    """Build a conv net behind placeholders of unknown batch size, with a loop and gradients.

    Return its steps as (fetches, feed), with several batch sizes.
    """
    images = tf.placeholder(tf.float32, [None, 12, 12, 3], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    scale = tf.placeholder_with_default(tf.constant(2.0), [], name="scale")
    kernel = tf.get_variable("conv/kernel", [3, 3, 3, 8])
    features = tf.nn.relu(tf.nn.conv2d(images, kernel, strides=[1, 1, 1, 1], padding="SAME", name="conv/Conv2D"))
    features = tf.nn.max_pool(features, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", name="pool")
    flat = tf.reshape(features, [-1, 6 * 6 * 8], name="flat")
    weights = tf.get_variable("dense/kernel", [6 * 6 * 8, 10])
    bias = tf.get_variable("dense/bias", [10])
    logits = tf.nn.bias_add(tf.matmul(flat, weights, name="dense/MatMul"), bias, name="dense/BiasAdd")
    square = tf.get_variable("square", [10, 10])
    loop_body = lambda i, x: (i + 1, tf.matmul(x, square, name="loop/MatMul") * 0.1)  # noqa: E731
    loop = tf.while_loop(lambda i, _x: i < 3, loop_body, (tf.constant(0), logits))[1]
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=loop)) * scale
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    random = np.random.RandomState(0)
    steps = []
    for batch, fetches in ((4, [train, loss]), (6, [train, loss]), (6, [loss]), (5, [train, loss])):
        steps.append((fetches, {images: random.rand(batch, 12, 12, 3), labels: random.randint(0, 10, batch)}))
    return steps


def odd():
    """Build contradictory shapes, missing outputs and unknown ranks; return the steps."""
    anything = tf.placeholder(tf.float32, None, name="anything")
    rows = tf.placeholder(tf.float32, [None, 3], name="rows")
    square = tf.square(anything, name="square")
    chosen = tf.cond(tf.reduce_sum(rows) > 2.0, lambda: rows * 2.0, lambda: rows + 1.0)
    size = tf.size(tf.unique(tf.reshape(tf.round(rows * 3), [-1]))[0], name="size")
    grown = tf.while_loop(
        lambda x: tf.shape(x)[0] < 9,
        lambda x: tf.concat([x, tf.sqrt(x, name="grown/Sqrt")], 0),
        [rows],
        shape_invariants=[tf.TensorShape([None, 3])],
    )
    doubled = tf.square(grown, name="doubled")
    random = np.random.RandomState(1)
    sizes = ((2, (2, 2)), (3, ()), (2, (4,)))
    fetches = [square, chosen, size, doubled]
    return [(fetches, {anything: random.rand(*shape), rows: random.rand(row_count, 3)}) for row_count, shape in sizes]


BUILDERS = {"kinds": kinds, "fed": fed, "odd": odd}


def new_session():
    """Return a session of the default graph with initialized variables."""
    initializer = tf.global_variables_initializer()
    session = tf.Session()
    session.run(initializer)
    return session


def counts(graph):
    """Return the registry's present count of each node of ``graph``."""
    count_of_node = {}
    for op in graph.get_operations():
        try:
            number = ops.get_stats_for_node_def(graph, op.node_def, "flops").value
        except ValueError:
            continue
        if number:
            count_of_node[op.name] = int(number)
    return count_of_node


def options(step):
    """Return the options for the float_ops of all nodes in ``step``."""
    result = dict(tf.profiler.ProfileOptionBuilder.float_operation(), output="none", step=step, max_depth=10000)
    result.update(min_float_ops=0, order_by="name", account_displayed_op_only=False)
    return result


def float_ops(root):
    """Return the float_ops of each node in an op view, and their total."""
    nodes, node = {}, root
    while node.children:
        node = node.children[0]
        nodes.update((graph_node.name, graph_node.float_ops) for graph_node in node.graph_nodes)
    return {"total": root.total_float_ops, "nodes": nodes}


def write(folder, build):
    """Build a graph, trace its steps, and write all files of a case."""
    folder.mkdir()
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        steps = build()
        session = new_session()
        (folder / "graph.pb").write_bytes(graph.as_graph_def(add_shapes=True).SerializeToString())
        all_counts = {"static": counts(graph), "steps": {}}
        profiler = tf.profiler.Profiler(graph)
        for number, (fetches, feed) in enumerate(steps):
            run = tf.RunMetadata()
            level = tf.RunOptions.FULL_TRACE if number % 2 else tf.RunOptions.SOFTWARE_TRACE
            session.run(fetches, feed, options=tf.RunOptions(trace_level=level), run_metadata=run)
            profiler.add_step(number, run)
            (folder / f"run-{number}.pb").write_bytes(run.SerializeToString())
        for number in range(-1, len(steps)):
            all_counts["steps"][number] = float_ops(profiler.profile_operations(options(number)))
        all_counts["filled"] = counts(graph)
        session.close()
    with tf.Graph().as_default() as graph:
        build()
        graph_alone = float_ops(tf.profiler.profile(graph, cmd="op", options=options(-1)))
        run = tf.RunMetadata.FromString((folder / "run-0.pb").read_bytes())
        all_counts["once"] = [
            graph_alone,
            float_ops(tf.profiler.profile(graph, run_meta=run, cmd="op", options=options(-1))),
        ]
    (folder / "counts.json").write_text(json.dumps(all_counts))


def main():
    """Write all cases."""
    tf.disable_v2_behavior()
    for name, build in BUILDERS.items():
        write(Path(sys.argv[1]) / name, build)


if __name__ == "__main__":
    main()
