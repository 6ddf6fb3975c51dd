"""Runs under TensorFlow 1.15 or 2.x: trains and traces small nets, and writes each as a case.

    python real_runs.py CASES

Each folder in CASES gets `graph.pb`, `run-N.pb`, `op_log.pb` as TensorFlow's Python makes it, and
`flops.json`. `flops.json` has the operation counts of the TF profiler without the op log: {"once":
{op type: flops}, "steps": [{op type: flops}, …]}.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.profiler import tfprof_logger


def conv_net():
    """Build a conv net with known shapes; return its step.

    A step is a function of a RandomState that returns the fetches and the feed of a run.
    """
    images = tf.random_uniform([4, 12, 12, 3], name="images")
    kernel = tf.get_variable("conv/kernel", [3, 3, 3, 8])
    features = tf.nn.relu(tf.nn.conv2d(images, kernel, strides=[1, 1, 1, 1], padding="SAME", name="conv/Conv2D"))
    features = tf.nn.max_pool(features, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    weights = tf.get_variable("dense/kernel", [6 * 6 * 8, 10])
    logits = tf.nn.bias_add(tf.matmul(tf.reshape(features, [-1, 6 * 6 * 8]), weights), tf.get_variable("bias", [10]))
    labels = tf.constant([1, 2, 3, 4])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return lambda _random: ([train, loss], {})


def loop():
    """Build a net with a split, a loop, control dependencies and gradients; return its step.

    The batch size differs from step to step.
    """
    images = tf.placeholder(tf.float32, [None, 8, 8, 3], name="images")
    with tf.variable_scope("tower_0"):
        kernel = tf.get_variable("kernel", [3, 3, 3, 4])
        features = tf.nn.conv2d(images, kernel, strides=[1, 2, 2, 1], padding="VALID", name="conv")
        first_half, second_half = tf.split(features, 2, axis=3)
        flat = tf.reshape(first_half - tf.square(second_half), [-1, 18])
        _, looped = tf.while_loop(lambda i, _x: i < 5, lambda i, x: (i + 1, tf.tanh(x) * 2.0), (tf.constant(0), flat))
        with tf.control_dependencies([tf.assert_non_negative(tf.square(looped))]):
            loss = tf.reduce_sum(tf.nn.softmax(looped)[:, 0])
        gradients = tf.gradients(loss, [kernel])
        update = kernel.assign_sub(0.1 * gradients[0])
    return lambda random: ([update, loss], {images: random.rand(random.randint(2, 9), 8, 8, 3)})


def rnn():
    """Build a recurrent net with an optimizer; return its step.

    The lengths of the sequences differ.
    """
    inputs = tf.placeholder(tf.float32, [None, None, 6], name="inputs")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    cell = tf.get_variable("cell/kernel", [6 + 5, 5])

    def loop_body(time, state):
        cell_input = tf.concat([inputs[:, time, :], state], 1)
        return time + 1, tf.where(tf.less(time, lengths), tf.tanh(tf.matmul(cell_input, cell)), state)

    start = (tf.constant(0), tf.zeros([tf.shape(inputs)[0], 5]))
    shapes = (tf.TensorShape([]), tf.TensorShape([None, 5]))
    _, state = tf.while_loop(lambda time, _state: time < tf.reduce_max(lengths), loop_body, start, shapes)
    loss = tf.reduce_mean(tf.square(state))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)

    def step(random):
        count = random.randint(2, 5)
        return [train, loss], {inputs: random.rand(count, 7, 6), lengths: random.randint(1, 8, count)}

    return step


RUNS = {"conv": conv_net, "loop": loop, "rnn": rnn}
STEPS = 3


def by_type(root):
    """Return {op type: flops} from the message of an op view."""
    flops_of_type = {}
    while root.children:
        root = root.children[0]
        flops_of_type[root.name] = root.float_ops
    return flops_of_type


def flops(graph, runs):
    """Return the TF profiler's counts of the first run alone, and of each step among all runs."""
    options = dict(tf.profiler.ProfileOptionBuilder.float_operation(), output="none", min_float_ops=0)
    profiler = tf.profiler.Profiler(graph)
    for step, run in enumerate(runs):
        profiler.add_step(step, run)
    steps = [by_type(profiler.profile_operations(dict(options, step=step))) for step in range(len(runs))]
    del profiler
    once = tf.profiler.profile(graph, run_meta=runs[0], cmd="op", options=options)
    return {"once": by_type(once), "steps": steps}


def write_case(folder, build):
    """Run the net of ``build`` and write its case."""
    os.makedirs(folder)
    random = np.random.RandomState(0)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        step = build()
        initializer = tf.global_variables_initializer()
        definition = graph.as_graph_def(add_shapes=True).SerializeToString()
        session.run(initializer)
        runs = []
        for _ in range(STEPS):
            run = tf.RunMetadata()
            fetches, feed = step(random)
            session.run(fetches, feed, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=run)
            runs.append(run)
        flop_counts = flops(graph, runs)
        log = tfprof_logger.merge_default_with_oplog(graph, None, runs[0], add_trace=True)
    parts = {"graph": definition, "op_log": log.SerializeToString()}
    parts.update((f"run-{number}", run.SerializeToString()) for number, run in enumerate(runs))
    for name, data in parts.items():
        with open(os.path.join(folder, name + ".pb"), "wb") as file:
            file.write(data)
    with open(os.path.join(folder, "flops.json"), "w") as file:
        json.dump(flop_counts, file)


def main():
    """Write all cases."""
    tf.disable_v2_behavior()
    for name, build in RUNS.items():
        write_case(os.path.join(sys.argv[1], name), build)


if __name__ == "__main__":
    main()
