"""Compares the graphs and frames that the shim sends with TensorFlow's own, and prints the results.

It runs with the shim armed.
"""

import gc
import json
import sys
import weakref

import numpy as np
import tensorflow as tf
from _tfprof.formats import layout
from _tfprof.shim import core
from _tfprof.shim.tensorflow import graph
from tensorflow.core.framework import graph_pb2
from tensorflow.python.profiler import tfprof_logger

tf1 = tf.compat.v1


class FakeChannel:
    """Takes the place of a channel, and keeps the records that are put into it."""

    data_max = layout.RECORD_MAX

    def __init__(self):
        self.put_records = []

    def put(self, kind, data, **fields):
        self.put_records.append((kind, data, fields))
        return True


def is_equal(tf_graph, channel):
    """Return whether the graph in the channel equals TensorFlow's conversion of ``tf_graph``.

    Libraries, versions and the values of large constants are not compared.
    """
    sent = graph_pb2.GraphDef()
    for kind, data, _ in channel.put_records:
        if kind == layout.GRAPH:
            sent.MergeFromString(data)
    expected = tf_graph.as_graph_def(add_shapes=True)
    for definition in (sent, expected):
        definition.ClearField("library")
        definition.ClearField("versions")
        for node in definition.node:
            if node.op == "Const" and len(node.SerializeToString()) > graph.ATTR_MAX:
                del node.attr["value"]
    for node in expected.node:
        if "value" not in node.attr:
            continue
        for other in sent.node:
            if other.name == node.name and "value" not in other.attr:
                del node.attr["value"]
    return sent == expected


def frames_of(channel):
    """Return (variables of each record of frames, stacks of all nodes)."""
    variables, stacks = [], {}
    for kind, data, _ in channel.put_records:
        if kind == layout.FRAMES:
            record = json.loads(data.decode())
            starts = record.get("starts", [-1] * len(record["frames"]))
            frames = [
                (record["files"][file], line, record["functions"][function], starts[at])
                for at, (file, line, function) in enumerate(record["frames"])
            ]
            stacks.update(
                (name, [frames[at] for at in record["stacks"][stack]]) for name, stack in record["nodes"].items()
            )
            variables.append(record.get("variables", {}))
    return variables, stacks


def op_log_of(tf_graph):
    """Return (trainable variables, stacks of all nodes) from TensorFlow's op log of a graph."""
    entries, ids = tfprof_logger._get_logged_ops(tf_graph)
    texts = {number: text for text, number in ids.items()}
    stacks = {
        name: [(texts[t.file_id], t.lineno, texts[t.function_id], t.func_start_line) for t in entry.code_def.traces]
        for name, entry in entries.items()
    }
    return {name for name, entry in entries.items() if "_trainable_variables" in entry.types}, stacks


def check_functions():
    """Print the shapes of the variables that the shim sends for functions with a gradient."""
    kernel, bias = tf.Variable(tf.zeros([4, 3])), tf.Variable(tf.zeros([3]))
    scale, count = tf.Variable(2.0), tf.Variable(0, trainable=False)

    @tf.function
    def layer(x):
        return tf.matmul(x, kernel) + bias

    @tf.function
    def step(x):
        count.assign_add(1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x)) * scale
        if loss > 0:
            loss = loss * scale
        return tape.gradient(loss, [kernel, bias, scale])

    channel = FakeChannel()
    for size in (1, 2):
        graph.ensure_sent(step.get_concrete_function(tf.TensorSpec([size, 4])).graph, channel, ())
    variables = [sizes for sizes_of_name in frames_of(channel)[0] for sizes in sizes_of_name.values()]
    print("functions", sorted(variables))


def main():
    channel, tf_graph = FakeChannel(), tf1.Graph()
    with tf_graph.as_default():
        fed = tf1.placeholder(tf.float32, [None, 64], "fed")
        tf1.placeholder(tf.float32, None, "anything")
        weights = tf1.get_variable("weights", [64, 64])
        tf1.get_variable("parts", [8, 2], partitioner=tf1.fixed_size_partitioner(2))
        tf1.get_variable("resource", [5], use_resource=True)
        tf1.get_variable("constant", [5], trainable=False)
        tf.nn.relu(tf.matmul(fed, weights) + 1.0, name="relu")
    graph.ensure_sent(tf_graph, channel)
    print("sent", len(channel.put_records), "equal", is_equal(tf_graph, channel))
    graph.ensure_sent(tf_graph, channel)
    print("again", len(channel.put_records))
    with tf_graph.as_default():
        tf.constant(np.ones((100, 100), "float32"), name="large")
        tf.reduce_sum(tf_graph.get_tensor_by_name("relu:0"), name="total")
        tf1.get_variable("later", [2])
    graph.ensure_sent(tf_graph, channel)
    print("grown", len(channel.put_records), "equal", is_equal(tf_graph, channel))
    new_names = {node.name for node in graph_pb2.GraphDef.FromString(channel.put_records[2][1]).node}
    print("new nodes", "total" in new_names, "relu" in new_names)
    (first_variables, later_variables), stacks = frames_of(channel)
    trainable_names, logged_stacks = op_log_of(tf_graph)
    is_same = {**first_variables, **later_variables}.keys() == trainable_names
    print("variables", sorted(first_variables), sorted(later_variables), is_same, {*first_variables.values()} == {None})
    print("stacks", stacks == logged_stacks, any(frame[3] > 0 for stack in stacks.values() for frame in stack))
    print("large", max(len(data) for kind, data, _ in channel.put_records if kind == layout.GRAPH) < 40000)
    print("numbers", sorted({fields["step"] for _, _, fields in channel.put_records}))
    small = tf1.Graph()
    with small.as_default():
        tf.constant(1.0)
    graph.ensure_sent(small, channel)
    reference = weakref.ref(small)
    del small
    gc.collect()
    print("kept alive", reference() is not None, "count", len(graph._sent_graphs.graphs))


main()
if not tf.__version__.startswith("1."):
    check_functions()
print("ready", flush=True)
assert core.state() is not None
sys.stdin.readline()
