"""Says whether the shim's GraphDef equals TensorFlow's own, with shapes; runs with the shim armed."""

import gc
import sys
import weakref

import numpy as np
import tensorflow as tf
from _tfprof_shim import core, graph, layout
from tensorflow.core.framework import graph_pb2

tf1 = tf.compat.v1


class Records:
    """Takes the place of a channel."""

    def __init__(self):
        self.put_records = []

    def fits(self, size):
        return True

    def put(self, kind, data, **more):
        self.put_records.append((kind, data, more))
        return True


def equal(made, records):
    sent = graph_pb2.GraphDef()
    for kind, data, _ in records.put_records:
        if kind == layout.GRAPH:
            sent.MergeFromString(data)
    own = made.as_graph_def(add_shapes=True)
    for definition in (sent, own):
        definition.ClearField("library")
        definition.ClearField("versions")
        for node in definition.node:
            if node.op == "Const" and len(node.SerializeToString()) > graph.ATTR_MAX:
                del node.attr["value"]
    for node in own.node:
        if "value" not in node.attr:
            continue
        for other in sent.node:
            if other.name == node.name and "value" not in other.attr:
                del node.attr["value"]
    return sent == own


def main():
    records, made = Records(), tf1.Graph()
    with made.as_default():
        fed = tf1.placeholder(tf.float32, [None, 64], "fed")
        tf1.placeholder(tf.float32, None, "anything")
        weights = tf1.get_variable("weights", [64, 64])
        tf.nn.relu(tf.matmul(fed, weights) + 1.0, name="relu")
    print("spent", graph.ensure_sent(made, records) > 0, "equal", equal(made, records))
    print("again", graph.ensure_sent(made, records), len(records.put_records))
    with made.as_default():
        tf.constant(np.ones((100, 100), "float32"), name="large")
        tf.reduce_sum(made.get_tensor_by_name("relu:0"), name="total")
    print("grown", graph.ensure_sent(made, records) > 0, "equal", equal(made, records))
    print("new nodes", [node.name for node in graph_pb2.GraphDef.FromString(records.put_records[2][1]).node][-1])
    print("large", max(len(data) for kind, data, _ in records.put_records if kind == layout.GRAPH) < 40000)
    print("numbers", sorted({more["step"] for _, _, more in records.put_records}))
    small = tf1.Graph()
    with small.as_default():
        tf.constant(1.0)
    graph.ensure_sent(small, records)
    gone = weakref.ref(small)
    del small
    gc.collect()
    print("kept alive", gone() is not None, "count", len(graph._sent.graphs))


main()
print("ready", flush=True)
assert core.state() is not None
sys.stdin.readline()
