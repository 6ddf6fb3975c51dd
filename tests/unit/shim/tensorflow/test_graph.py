"""Graphs sent into the channel, with fake graphs and without TensorFlow.

Tests shim/tensorflow/variables.py.
"""

import gc
import json
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.formats import layout
from tfprof.shim import guard
from tfprof.shim.tensorflow import graph, models


class Shape:
    """A TensorShape of known or unknown rank."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.ndims = None if sizes is None else len(sizes)

    def as_list(self):
        return self.sizes


def op(name, *shapes, frames=(("job.py", 1, "main"),)):
    trace = [SimpleNamespace(filename=file, lineno=line, name=function) for file, line, function in frames]
    outputs = [SimpleNamespace(shape=Shape(sizes)) for sizes in shapes]
    return SimpleNamespace(name=name, type="Fake", outputs=outputs, _traceback=trace)


class Graph:
    """A graph of fake ops; ``definition`` is its GraphDef."""

    def __init__(self, *ops):
        self._lock = threading.RLock()
        self.ops = list(ops)
        self._functions: dict[str, SimpleNamespace] = {}
        self.collection: list[object] = []
        self.collections: dict[str, list[object]] = {}
        self._weak_variables: list[Any] = []
        self.captures: list[tuple[object, SimpleNamespace]] = []
        self.definition = graph_pb2.GraphDef()
        for fake_op in ops:
            self.definition.node.add(name=fake_op.name, op="Fake")

    @property
    def version(self):
        return len(self.ops)

    def get_operations(self):
        return self.ops

    def get_collection(self, name):
        return self.collection if name == "trainable_variables" else self.collections.get(name, [])

    def add(self, fake_op):
        self.ops.append(fake_op)
        self.definition.node.add(name=fake_op.name, op="Fake")


@pytest.fixture
def graph_channel(monkeypatch, channel):
    monkeypatch.setattr(graph, "graph_def", lambda fake_graph: fake_graph.definition.SerializeToString())
    return channel


def node_names(record):
    return [node.name for node in graph_pb2.GraphDef.FromString(record.data).node]


def test_a_graph_is_sent_once_and_later_only_its_new_nodes(graph_channel, reader):
    fake_graph = Graph(op("a", [2, 3]), op("b", []))
    for _ in range(2):
        graph.ensure_sent(fake_graph, graph_channel)
    fake_graph.add(op("c", None))
    graph.ensure_sent(fake_graph, graph_channel)
    records = reader.take().records
    assert [record.kind for record in records] == [layout.GRAPH, layout.FRAMES] * 2
    assert [node_names(record) for record in records[::2]] == [["a", "b"], ["c"]]
    assert {record.step for record in records} == {1}
    assert [json.loads(record.data)["first_stack"] for record in records[1::2]] == [0, 2]


def test_graphs_are_numbered_and_none_is_kept_alive(graph_channel, reader):
    first, second = Graph(op("a")), Graph(op("b"))
    for fake_graph in (first, second, first):
        graph.ensure_sent(fake_graph, graph_channel)
    assert [record.step for record in reader.take().records] == [1, 1, 2, 2]
    del first, second, fake_graph
    gc.collect()
    assert len(graph._sent_graphs.graphs) == 0


def test_after_a_full_ring_a_graph_is_sent_once(graph_channel, reader):
    fake_graph = Graph(op("a"))
    graph_channel.put(layout.XSPACE, b"x" * (layout.RING_MIN - 200))
    graph.ensure_sent(fake_graph, graph_channel)
    reader.take()
    graph.ensure_sent(fake_graph, graph_channel)
    graph.ensure_sent(fake_graph, graph_channel)
    assert [record.kind for record in reader.take().records[1:]] == [layout.GRAPH, layout.FRAMES]


def test_a_graph_that_is_too_large_is_refused_once(graph_channel, reader):
    fake_graph = Graph(*(op(f"n{number}" + "x" * 4000) for number in range(layout.RING_MIN // 4000 + 1)))
    for _ in range(3):
        graph.ensure_sent(fake_graph, graph_channel)
    (record,) = reader.take().records
    assert (record.kind, json.loads(record.data)["slug"]) == (layout.REFUSED, "graph-too-large")


def test_a_graph_that_another_thread_holds_is_sent_later(graph_channel, reader):
    fake_graph, held, release = Graph(op("a")), threading.Event(), threading.Event()

    def hold():
        with fake_graph._lock:
            held.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    graph.ensure_sent(fake_graph, graph_channel)
    assert reader.take().records == []
    release.set()
    holder.join()
    graph.ensure_sent(fake_graph, graph_channel)
    assert len(reader.take().records) == 2


def test_functions_called_by_a_function_are_sent_too(graph_channel, reader):
    inner = Graph(op("inner"))
    outer = Graph(op("outer"))
    outer._functions = {"f": SimpleNamespace(graph=inner), "lazy": SimpleNamespace(_cached_graph=None)}
    inner._functions = {"again": SimpleNamespace(graph=outer)}
    graph.ensure_sent(outer, graph_channel, ())
    assert [node_names(record) for record in reader.take().records[::2]] == [["outer"], ["inner"]]


def variables(record):
    return json.loads(record.data).get("variables")


def variable_of(fake_graph, name, is_integer=False):
    return SimpleNamespace(
        op=SimpleNamespace(name=name, graph=fake_graph), dtype=SimpleNamespace(is_integer=is_integer)
    )


def test_trainable_variables_of_a_graph_are_sent_once(graph_channel, reader):
    fake_graph, outer = Graph(op("a")), Graph(op("b"))
    fake_graph.collection = [variable_of(fake_graph, "a"), variable_of(outer, "b"), variable_of(fake_graph, "a")]
    graph.ensure_sent(fake_graph, graph_channel)
    fake_graph.add(op("c"))
    fake_graph.collection.append(variable_of(fake_graph, "c"))
    graph.ensure_sent(fake_graph, graph_channel)
    fake_graph.add(op("d"))
    graph.ensure_sent(fake_graph, graph_channel)
    assert [variables(record) for record in reader.take().records[1::2]] == [{"a": None}, {"c": None}, None]


def variable_op(name):
    variable = op(name)
    variable.type = "VarHandleOp"
    return variable


def test_variables_of_no_model_are_sent_as_state(graph_channel, reader):
    fake_graph = Graph(op("a"), variable_op("w"), variable_op("w/Adam"))
    w, own_variable = variable_of(fake_graph, "w"), variable_of(fake_graph, "own")
    mirrored_variable = SimpleNamespace(_values=(w, variable_of(fake_graph, "w/replica_1")))
    fake_graph.collection = [mirrored_variable, own_variable]
    fake_graph.collections["variables"] = [
        mirrored_variable,
        own_variable,
        variable_of(fake_graph, "moving"),
        variable_of(fake_graph, "global_step", is_integer=True),
    ]
    fake_graph.collections["local_variables"] = [variable_of(fake_graph, "total")]
    graph.ensure_sent(fake_graph, graph_channel)
    record = json.loads(reader.take().records[1].data)
    assert record["variables"] == {"w": None, "own": None}
    assert record["state"] == dict.fromkeys(["w/replica_1", "global_step", "total"])
    assert record["variable_ops"] == ["w", "w/Adam"]
    assert "others" not in record


def test_untrained_weights_of_a_running_model_are_sent(graph_channel, reader):
    class Model:
        weights: Any = ()
        trainable_weights: Any = ()

    fake_graph, model = Graph(op("a")), Model()
    kernel, frozen, count = (
        variable_of(fake_graph, "kernel"),
        variable_of(fake_graph, "frozen"),
        variable_of(fake_graph, "count", is_integer=True),
    )
    fake_graph.collection = [kernel, frozen]
    fake_graph.collections["variables"] = [kernel, frozen, count]
    model.weights, model.trainable_weights = [kernel, frozen, count], [kernel]
    graph.ensure_sent(Graph(op("b")), graph_channel)
    models.remember(model)
    graph.ensure_sent(fake_graph, graph_channel)
    record = json.loads(reader.take().records[3].data)
    assert record["variables"] == {"kernel": None, "frozen": None}
    assert record["others"] == {"frozen": None, "count": None}
    assert "state" not in record
    model.trainable_weights = [kernel, frozen]
    fake_graph.add(op("thawed"))
    graph.ensure_sent(fake_graph, graph_channel)
    record = json.loads(reader.take().records[-1].data)
    assert (record["variables"], "others" in record) == ({"frozen": None}, False)
    del model
    gc.collect()
    assert models.remembered.existing() == []


def test_variables_wait_with_the_frames_for_room_in_the_ring(graph_channel, reader):
    fake_graph = Graph(op("a"))
    fake_graph.collection = [variable_of(fake_graph, "a")]
    graph_channel.put(layout.XSPACE, b"x" * (layout.RING_MIN - 200))
    graph.ensure_sent(fake_graph, graph_channel)
    reader.take()
    graph.ensure_sent(fake_graph, graph_channel)
    assert variables(reader.take().records[-1]) == {"a": None}


class Variable:
    """A variable that functions use by its handle."""

    def __init__(self, name, sizes, trainable=True, is_integer=False):
        self.handle = object()
        self.dtype = SimpleNamespace(is_integer=is_integer)
        self._unique_id = name
        self.shape = Shape(sizes)
        self.trainable = trainable


def function_graph(*names, placeholders):
    """Return the graph of a function.

    ``placeholders`` maps each variable to the name of its placeholder.
    """
    fake_graph = Graph(*map(op, names))
    fake_graph._weak_variables = [weakref.ref(variable) for variable in placeholders]
    fake_graph.captures = [
        (v.handle, SimpleNamespace(op=SimpleNamespace(name=name))) for v, name in placeholders.items()
    ]
    return fake_graph


def test_each_variable_is_sent_once_for_the_function_that_uses_it(graph_channel, reader):
    kernel, step, count = Variable("k_1", [3, None]), Variable("s_2", []), Variable("n_3", [9], trainable=False)
    batches = Variable("b_4", [], is_integer=True)
    inner = function_graph("inner", placeholders={kernel: "dense/resource", count: "seen", batches: "batches"})
    outer = function_graph("outer", placeholders={kernel: "4711", step: "step"})
    outer._functions = {"f": SimpleNamespace(graph=inner)}
    graph.ensure_sent(outer, graph_channel, ())
    other = function_graph("other", placeholders={kernel: "again", step: "again"})
    graph.ensure_sent(other, graph_channel, ())
    records = reader.take().records
    assert [node_names(record) for record in records[::2]] == [["outer"], ["inner"], ["other"]]
    assert [record.step for record in records[::2]] == [1, 2, 3]
    assert [variables(record) for record in records[1::2]] == [{"step": []}, {"dense/resource": [3, -1]}, None]


def test_the_trainable_weights_of_the_model_decide_which_weights_are_trained(graph_channel, reader):
    class Model:
        def __init__(self, trained, others):
            self.trainable_weights, self.weights = trained, trained + others

    Model.weights = Model.trainable_weights = None  # a model is recognized by attributes of its class
    kernel, frozen, mean = Variable("k", [3]), Variable("f", [4]), Variable("m", [5], trainable=False)
    slot, loose = Variable("s", [6], trainable=False), Variable("l", [7])
    model = Model([kernel], [frozen, mean])
    names = {kernel: "kernel", frozen: "frozen", mean: "mean", slot: "slot", loose: "loose"}
    graph.ensure_sent(function_graph("f", placeholders=names), graph_channel, model)
    record = reader.take().records[1]
    assert variables(record) == {"kernel": [3], "loose": [7]}
    assert json.loads(record.data)["others"] == {"frozen": [4], "mean": [5]}


def test_weights_that_are_frozen_and_thawed_are_sent_again_under_the_name_of_their_first_node(graph_channel, reader):
    class Model:
        weights: Any = ()
        trainable_weights: Any = ()

    kernel, base, model = Variable("k", [3]), Variable("b", [4]), Model()
    model.weights = [kernel, base]
    states = [([kernel], model), ([kernel, base], model), ([kernel, base], None), ([base], model), ([base], model)]
    for number, (trained, model_argument) in enumerate(states):
        model.trainable_weights = trained
        names = {kernel: f"kernel_{number}", base: f"base_{number}"}
        graph.ensure_sent(function_graph(f"f_{number}", placeholders=names), graph_channel, model_argument)
    records = [json.loads(record.data) for record in reader.take().records[1::2]]
    assert [(record.get("variables"), record.get("others")) for record in records] == [
        ({"kernel_0": [3]}, {"base_0": [4]}),
        ({"base_0": [4]}, None),
        (None, None),
        (None, {"kernel_0": [3]}),
        (None, None),
    ]


def test_a_variable_that_cannot_be_examined_hides_no_other(graph_channel, reader):
    class BrokenVariable:
        trainable = True

        @property
        def handle(self):
            raise ValueError("not here")

        op = handle

    broken, gone, intact = BrokenVariable(), Variable("g_1", [1]), Variable("f_2", None)
    fake_graph = function_graph("f", placeholders={gone: "gone", intact: "fine"})
    fake_graph._weak_variables.insert(0, weakref.ref(broken))
    fake_graph.collection = [broken, variable_of(fake_graph, "own")]
    del gone
    gc.collect()
    graph.ensure_sent(fake_graph, graph_channel, ())
    assert variables(reader.take().records[1]) == {"fine": None, "own": None}
    assert graph_channel.words[layout.JOB_WORDS["faults"] // 8] == 2


SIZES = st.none() | st.lists(st.none() | st.integers(0, 2**62), max_size=5)


@given(st.lists(st.lists(SIZES, max_size=3), min_size=1, max_size=5), st.integers(0, 5))
def test_shapes_are_encoded_as_by_protobuf(outputs, first):
    ops = [op(f"node{number}", *shapes) for number, shapes in enumerate(outputs)]
    raw = Graph(*ops).definition.SerializeToString()
    parsed = graph_pb2.GraphDef.FromString(b"".join(graph.with_shapes(raw, first, graph.shapes(ops), True)))
    assert [node.name for node in parsed.node] == [fake_op.name for fake_op in ops[first:]]
    for node, shapes in zip(parsed.node, outputs[first:], strict=True):
        decoded = [
            None if shape.unknown_rank else [None if dim.size == -1 else dim.size for dim in shape.dim]
            for shape in node.attr["_output_shapes"].list.shape
        ]
        assert decoded == shapes


def test_weights_are_left_out_of_a_node(graph_channel):
    field = b"\x2a" + b"\x88\x27" + b"w" * 5000
    node = b"\x0a\x01c" + field + b"\x12\x05Const"
    assert graph.without_weights(node) == b"\x0a\x01c\x12\x05Const"


def test_each_frame_is_stored_once():
    shared_frames = (("job.py", 9, "main"), ("lib.py", 3, "layer"))
    ops = [op("a", frames=shared_frames), op("b", frames=shared_frames), op("c", frames=shared_frames[:1])]
    table = graph.frames(ops)
    assert table["files"] == ["job.py", "lib.py"]
    assert table["frames"] == [(0, 9, 0), (1, 3, 1)]
    assert table["stacks"] == [(0, 1), (0,)]
    assert table["nodes"] == {"a": 0, "b": 0, "c": 1}


def test_first_lines_of_functions_are_sent_where_they_are_known():
    with_frames, plain = op("a", frames=(("job.py", 9, "main"), ("lib.py", 3, "layer"))), op("b")
    assert "starts" not in graph.frames([with_frames, plain])
    with_frames._traceback[1].func_start_lineno = 2
    table = graph.frames([with_frames, plain, with_frames])
    assert (table["frames"], table["starts"]) == ([(0, 9, 0), (1, 3, 1), (0, 1, 0)], [-1, 2, -1])


def test_an_op_without_frames_is_left_out():
    copied_op = SimpleNamespace(name="copied", type="Fake", traceback=None)
    assert graph.frames([copied_op])["nodes"] == {}


def test_a_graph_whose_variables_fail_keeps_its_frames(graph_channel, reader, monkeypatch):
    monkeypatch.setattr(guard, "lets_errors_out", False)
    fake_graph = Graph(op("a"))
    fake_graph.get_collection = None  # type: ignore[method-assign, assignment]
    graph.ensure_sent(fake_graph, graph_channel)
    definition, record = reader.take().records
    assert (node_names(definition), list(json.loads(record.data)["frames"])) == (["a"], [[0, 1, 0]])
