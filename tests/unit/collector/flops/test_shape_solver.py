"""Inference of the open sizes of graphs from a known batch size.

Tests collector/flops/batches.py, collector/flops/constants.py, collector/flops/constraints.py,
collector/flops/op_rules.py.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from fakes.graphs import FLOAT, INT64, RESOURCE, const, definitions_of, node
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.flops.batches import batch_of_arguments, batch_of_iterator
from tfprof.collector.flops.op_rules import RULES
from tfprof.collector.flops.shape_solver import RecordedShape
from tfprof.collector.flops.shapes import Nodes

Graph = Sequence[graph_pb2.NodeDef]
FEED = node("x", "Placeholder", (), (-1, 12, 12, 6))


def inferred_shapes(*graphs: Graph, batch: int = 7, examples: int = 0, **recorded: Any) -> dict[str, Any]:
    """Return the shape of each node's first output by name.

    ``recorded`` has the recorded shapes by node. By default, only the shape of `x` is recorded,
    with the batch size ``batch``; `x` is the first node of the first graph. ``examples``: see
    `solve`.
    """
    nodes = Nodes(definitions_of(*graphs))
    declared_shape = graphs[0][0].attr["_output_shapes"].list.shape[0]
    feed = (batch, *[dim.size for dim in declared_shape.dim][1:])
    evidence = [RecordedShape(0, name, 0, dims) for name, dims in (recorded or {"x": feed}).items()]
    shapes = nodes.open_sizes.solve(evidence, examples)
    return {name: shapes.shape(graph, name, 0) for graph, name in nodes.by_key}


@pytest.mark.parametrize(
    ("node_def", "others", "expected"),
    [
        (node("y", "Relu", ["x"], (-1, 12, 12, 6)), [], (7, 12, 12, 6)),
        (node("y", "BiasAdd", ["x", "w"], (-1, 12, 12, 6)), [node("w", "Const", (), (6,))], (7, 12, 12, 6)),
        (node("y", "Conv2D", ["x", "w"], (-1, 6, 6, 4)), [node("w", "Const", (), (3, 3, 6, 4))], (7, 6, 6, 4)),
        (node("y", "AddV2", ["x", "w"], (-1, 12, 12, 6)), [node("w", "Const", (), (6,))], (7, 12, 12, 6)),
        (node("y", "AddV2", ["w", "x"], (-1, 12, 12, 6)), [node("w", "Const", (), (1, 1, 1, 6))], (7, 12, 12, 6)),
        (node("y", "MaxPool", ["x"], (-1, 6, 6, 6)), [], (7, 6, 6, 6)),
        (node("y", "Reshape", ["x", "w"], (-1, 864)), [const("w", -1, 864)], (7, 864)),
        (node("y", "Reshape", ["x", "w"], (-1, 6)), [const("w", -1, 6)], (7 * 144, 6)),
        (node("y", "Reshape", ["x", "w"], (-1, 2, 2, 6)), [const("w", -1, 2, 2, 6)], (7 * 36, 2, 2, 6)),
        (node("y", "Transpose", ["x", "w"], (6, -1, 12, 12)), [const("w", 3, 0, 1, 2)], (6, 7, 12, 12)),
        (node("y", "Transpose", ["x", "w"], (-1, 6, 12, 12)), [node("w", "Rank", (), (4,))], (7, 6, 12, 12)),
        (node("y", "Mean", ["x", "w"], (-1, 6)), [const("w", 1, 2)], (7, 6)),
        (node("y", "Mean", ["x", "w"], (-1, 1, 1, 6)), [const("w", -3, -2)], (7, 1, 1, 6)),
        (node("y", "Sum", ["x", "w"], (-1, 6)), [node("w", "Range", (), (2,))], (7, 6)),
        (node("y", "Max", ["x", "w"], (-1, -1)), [node("w", "Range", (), (-1,))], (-1, -1)),
        (node("y", "ExpandDims", ["x", "w"], (-1, 1, 12, 12, 6)), [const("w", 1, scalar=True)], (7, 1, 12, 12, 6)),
        (node("y", "Squeeze", ["x"], (-1, 12, 12, 6)), [], (7, 12, 12, 6)),
        (node("y", "ConcatV2", ["x", "x", "w"], (-1, 12, 12, 12)), [const("w", -1, scalar=True)], (7, 12, 12, 12)),
        (node("y", "ConcatV2", ["x", "x", "w"], (-1, 12, 12, 6)), [const("w", 0, scalar=True)], (-1, 12, 12, 6)),
        (node("y", "Split", ["w", "x"], (-1, 12, 12, 3)), [const("w", 3, scalar=True)], (7, 12, 12, 3)),
        (node("y", "Pack", ["x", "x"], (-1, 2, 12, 12, 6), axis=1), [], (7, 2, 12, 12, 6)),
        (node("y", "Unpack", ["x"], (-1, 12, 12), axis=3), [], (7, 12, 12)),
        (node("y", "Pad", ["x", "w"], (-1, 14, 14, 6)), [const("w", 0, 0, 1, 1, 1, 1, 0, 0)], (7, 14, 14, 6)),
        (node("y", "StridedSlice", ["x", "w", "w", "w"], (-1, 6), begin_mask=1, end_mask=1), [], (7, 6)),
        (node("y", "StridedSlice", ["x", "w", "w", "w"], (-1, 12, 12, 6)), [], (-1, 12, 12, 6)),
        (node("y", "GatherV2", ["t", "x", "w"], (-1, 12, 12, 6, 9)), [const("w", 0, scalar=True)], (7, 12, 12, 6, 9)),
        (node("y", "ResourceGather", ["t", "x"], (-1, 12, 12, 6, 9)), [], (7, 12, 12, 6, 9)),
        (node("y", "Einsum", ["x", "w"], (-1, 6, 2), equation="bhwc,cd->bwd"), [node("w", "V", (), (6, 2))], (7, 6, 2)),
        (node("y", "BroadcastTo", ["w", "s"], (-1, 12, 12, 6)), [node("s", "Shape", ["x"], (4,))], (7, 12, 12, 6)),
        (node("y", "Unique", ["x"], (-1,)), [], (-1,)),
    ],
)
def test_a_batch_size_propagates_through_ops(node_def: graph_pb2.NodeDef, others: Graph, expected: Any) -> None:
    assert inferred_shapes([FEED, *others, node_def])["y"] == expected


def test_a_batch_size_propagates_through_matrix_products() -> None:
    feed = node("x", "Placeholder", (), (-1, 5))
    weights = node("w", "VariableV2", (), (5, 3))
    shapes = inferred_shapes(
        [
            feed,
            weights,
            node("y", "MatMul", ["x", "w"], (-1, 3)),
            node("gradient", "MatMul", ["x", "y"], (5, 3), transpose_a=True),
            node("turned", "Transpose", ["x", "order"], (5, -1)),
            const("order", 1, 0),
            node("z", "MatMul", ["turned", "w2"], (-1, 3), transpose_a=True),
            node("w2", "VariableV2", (), (5, 3)),
            node("products", "BatchMatMulV2", ["matrices", "w"], (-1, 4, 3)),
            node("matrices", "Reshape", ["x", "shape"], (-1, 4, 5)),
            const("shape", -1, 4, 5),
        ],
        batch=8,
    )
    assert (shapes["y"], shapes["z"], shapes["matrices"], shapes["products"]) == ((8, 3), (8, 3), (2, 4, 5), (2, 4, 3))


def test_a_batch_size_propagates_backwards() -> None:
    graph = [FEED, node("k", "Const", (), (3, 3, 6, 4)), node("y", "Conv2D", ["x", "k"], (-1, 6, 6, 4))]
    assert inferred_shapes(graph, y=(5, 6, 6, 4))["x"] == (5, 12, 12, 6)


def test_gradients_have_the_shapes_of_the_tensors_that_they_belong_to() -> None:
    shapes = inferred_shapes(
        [
            FEED,
            node("kernel", "VariableV2", (), (3, 3, 6, 4)),
            node("conv", "Conv2D", ["x", "kernel"], (-1, 6, 6, 4)),
            node("pooled", "MaxPool", ["conv"], (-1, 3, 3, 4)),
            node("grad", "MaxPoolGrad", ["conv", "pooled", "up"], (-1, 6, 6, 4)),
            node("up", "Neg", ["pooled"], (-1, 3, 3, 4)),
            node("back", "Conv2DBackpropInput", ["shape", "kernel", "grad"], (-1, 12, 12, 6)),
            node("shape", "Shape", ["x"], (4,)),
        ]
    )
    assert shapes["back"] == (7, 12, 12, 6)
    assert shapes["grad"] == (7, 6, 6, 4)


def test_sizes_propagate_through_computed_shapes() -> None:
    shapes = inferred_shapes(
        [
            FEED,
            node("shape", "Shape", ["x"], (4,)),
            const("zero", 0),
            const("one", 1),
            node("batch", "StridedSlice", ["shape", "zero", "one", "one"], (), shrink_axis_mask=1),
            const("width", 864, scalar=True),
            node("flat_shape", "Pack", ["batch", "width"], (2,)),
            node("anything", "Unknown", (), None),
            node("flat", "Reshape", ["anything", "flat_shape"], (-1, 864)),
            node("zeros", "Fill", ["flat_shape", "width"], (-1, 864)),
            node("rest", "StridedSlice", ["shape", "one", "two", "one"], (2,)),
            const("two", 3),
            node("joined", "ConcatV2", ["first", "rest", "axis"], (3,)),
            node("first", "ExpandDims", ["batch", "axis"], (1,)),
            const("axis", 0, scalar=True),
            node("noise", "RandomUniform", ["joined"], (-1, 12, 12)),
            node("picked", "GatherV2", ["shape", "indices", "axis"], (2,)),
            const("indices", 0, 3),
            node("empty", "Fill", ["picked", "width"], (-1, 6)),
            node("last", "StridedSlice", ["shape", "minus", "axis", "one"], (), shrink_axis_mask=1),
            const("minus", -1),
            node("wide", "Pack", ["batch", "last"], (2,)),
            node("wides", "Fill", ["wide", "width"], (-1, -1)),
            node("tiled", "Tile", ["row", "times"], (-1, 6)),
            node("row", "Const", (), (1, 6)),
            node("times", "Pack", ["batch", "unit"], (2,)),
            const("unit", 1, scalar=True),
        ]
    )
    assert (shapes["flat"], shapes["zeros"]) == ((7, 864), (7, 864))
    assert (shapes["noise"], shapes["empty"], shapes["tiled"]) == ((7, 12, 12), (7, 6), (7, 6))
    assert shapes["wides"] == (7, 6)


def test_the_first_of_contradicting_shapes_counts() -> None:
    graph = [FEED, node("y", "Relu", ["x"], (-1, 12, 12, 6))]
    assert inferred_shapes(graph, x=(7, 12, 12, 6), y=(9, 12, 12, 6))["y"] == (7, 12, 12, 6)


def test_a_size_that_the_graph_has_elsewhere_needs_no_recorded_shape() -> None:
    graph = [node("x", "Placeholder", (), (-1, 3)), node("y", "AddN", ["x", "z"], (-1, 3)), node("z", "V", (), (4, 3))]
    nodes = Nodes(definitions_of(graph))
    assert nodes.open_sizes.solve(()).shape(0, "x", 0) == (4, 3)


def test_a_size_that_is_broadcast_may_be_1() -> None:
    graph = [node("x", "Placeholder", (), (-1, 3)), node("y", "AddV2", ["x", "z"], (4, 3)), node("z", "V", (), (4, 3))]
    assert Nodes(definitions_of(graph)).open_sizes.solve(()).shape(0, "x", 0) == (-1, 3)


def test_a_function_has_the_shapes_of_its_arguments() -> None:
    caller = [FEED, node("v", "Placeholder", (), (), dtype=RESOURCE), node("c", "PartitionedCall", ["x", "v"], (-1,))]
    callee = [
        node("data", "Placeholder", (), (-1, 12, 12, 6)),
        node("variable", "Placeholder", (), (), dtype=RESOURCE),
        node("y", "Relu", ["data"], (-1, 12, 12, 6)),
    ]
    other = [node("n", "Placeholder", (), (-1, 9, 9, 6)), node("m", "Placeholder", (), ())]
    shapes = inferred_shapes(caller, callee, other)
    assert shapes["y"] == (7, 12, 12, 6)
    assert shapes["n"] == (-1, 9, 9, 6)


def test_the_most_specific_matching_function_is_called() -> None:
    caller = [node("x", "Placeholder", (), (4, 3)), node("c", "PartitionedCall", ["x"], ())]
    general, exact = [node("a", "Placeholder", (), (-1, 3))], [node("b", "Placeholder", (), (4, 3))]
    nodes = Nodes(definitions_of(caller, general, exact, [node("d", "Placeholder", (), (5, 3))]))
    assert nodes.calls.reachable([0]) == {0, 2}


def test_a_loop_keeps_its_shapes_and_uses_the_batch_size_for_unknown_sizes() -> None:
    caller = [FEED, node("net/while", "While", ["x", "list"], (-1, 12, 12, 6), ()), node("list", "TensorList", (), ())]
    body = [
        node("net/while/state", "Placeholder", (), (-1, 12, 12, 6)),
        node("net/while/items", "Placeholder", (), ()),
        node("net/while/y", "Relu", ["net/while/state"], (-1, 12, 12, 6)),
        node("net/while/item", "TensorListGetItem", ["net/while/items"], (-1, 5)),
    ]
    assert inferred_shapes(caller, body)["net/while/y"] == (7, 12, 12, 6)
    assert inferred_shapes(caller, body)["net/while/item"] == (-1, 5)
    assert inferred_shapes(caller, body, examples=7)["net/while/item"] == (7, 5)


dims = st.none() | st.lists(st.sampled_from([-1, 0, 1, 2, 3]), max_size=4).map(tuple)
numbers = st.lists(st.integers(-5, 5), max_size=5)


@given(
    st.sampled_from(sorted({*RULES, "Shape", "ShapeN", "Identity", "StatefulPartitionedCall", "If"})),
    st.lists(st.sampled_from(["x", "y", "c", "c2", "z", "gone", "y:1", "x:7", "^x"]), max_size=5),
    st.lists(dims, max_size=3),
    st.tuples(dims, numbers, numbers, st.integers(-7, 7)),
)
def test_random_graphs_raise_no_error(
    op: str, inputs: list[str], outputs: list[Any], parameters: tuple[Any, ...]
) -> None:
    x_shape, first, second, number = parameters
    graph = [
        node("x", "Placeholder", (), x_shape),
        node(
            "y",
            op,
            inputs,
            *outputs,
            axis=number,
            begin_mask=number % 4,
            shrink_axis_mask=number % 3,
            equation="ab,b->a",
        ),
        const("c", *first),
        const("c2", *second, scalar=len(second) == 1),
        node("z", op, ["y", "c2", *inputs], *outputs, transpose_a=True),
        node("to", "Fill", ["z", "c"], (-1, -1)),
    ]
    nodes = Nodes(definitions_of(graph, graph[:1]))
    shapes = nodes.open_sizes.solve([RecordedShape(0, "x", 0, (2, 3)), RecordedShape(0, "y", 0, (4,))])
    for (graph_number, name), graph_node in nodes.by_key.items():
        for slot in range(len(graph_node.outputs) + 1):
            shapes.shape(graph_number, name, slot)


def test_the_examples_of_a_batch_follow_from_its_bytes() -> None:
    (iterator,) = definitions_of(
        [node("next", "IteratorGetNext", ["i"], (-1, 3), (-1,), (2,), types=(FLOAT, INT64, FLOAT))]
    )
    assert batch_of_iterator(iterator, 8 + 5 * 20).examples == 5
    assert batch_of_iterator(iterator, 8 + 5 * 20 + 1).examples is None
    assert batch_of_iterator(iterator, 8).examples is None
    (fixed,) = definitions_of([node("next", "IteratorGetNext", ["i"], (4, 3), types=(FLOAT,))])
    assert batch_of_iterator(fixed, 48).examples == 0
    assert batch_of_iterator(fixed, 36).examples is None
    (strings,) = definitions_of([node("next", "IteratorGetNext", ["i"], (-1,), types=(7,))])
    assert batch_of_iterator(strings, 48).examples is None, "the size of a text is unknown"
    (two_open,) = definitions_of([node("next", "IteratorGetNext", ["i"], (-1, -1), types=(FLOAT,))])
    assert batch_of_iterator(two_open, 48).examples is None


def test_variables_are_not_part_of_a_batch_of_arguments() -> None:
    function = definitions_of([node("x", "Placeholder", (), (-1, 3)), node("v", "Placeholder", (), (), dtype=RESOURCE)])
    assert batch_of_arguments(function, 60).examples == 5
