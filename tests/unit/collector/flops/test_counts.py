"""Operation counts of nodes over traced steps.

Tests collector/flops/definitions.py, collector/flops/fusions.py, collector/flops/shapes.py.
"""

from collections.abc import Mapping, Sequence

from fakes.graphs import FLOAT, RESOURCE, definitions_of, equivalent_steps, execution, node, row
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.flops.counts import Count, ExecutedNodes, OperationCounter, OperationCounts, registry_counts
from tfprof.collector.flops.definitions import InputSource
from tfprof.collector.flops.executed import EquivalentSteps, SampleExecution
from tfprof.collector.flops.shapes import CommonShapes, Nodes, StepShapes, batch_nodes, open_nodes, with_recorded_shapes
from tfprof.collector.tfviews.parity import DEFAULT, Parity

IMAGES, KERNEL = node("x", "Placeholder", (), (-1, 8, 8, 6)), node("w", "VariableV2", (), (3, 3, 6, 4))
CONV = node("conv", "Conv2D", ["x", "w"], (-1, 6, 6, 4), strides=[1, 1, 1, 1])
BIAS, RELU = node("bias", "BiasAdd", ["conv", "b"], (-1, 6, 6, 4)), node("relu", "Relu", ["bias"], (-1, 6, 6, 4))
#: Operations of the convolution for one example.
PER_EXAMPLE = 2 * 6 * 6 * 4 * 54

Graph = Sequence[graph_pb2.NodeDef]


def count(
    graphs: Sequence[Graph],
    executions: Mapping[str, SampleExecution],
    *step_groups: EquivalentSteps,
    op_log: Mapping[str, int] | None = None,
) -> OperationCounts:
    """Return the counts of the nodes in ``executions`` after traced ``step_groups``."""
    nodes = Nodes(definitions_of(*graphs))
    counter = OperationCounter(ExecutedNodes(nodes, executions, DEFAULT), op_log or {}, open_nodes(nodes, executions))
    for steps in step_groups:
        counter.add(steps, StepShapes(nodes, steps.rows))
    return counter.count()


def test_nodes_with_fixed_shapes_are_counted_from_a_sample_execution() -> None:
    graph = [node("a", "Const", (), (3, 5)), node("b", "Const", (), (5, 7)), node("y", "MatMul", ["a", "b"], (3, 7))]
    result = count([graph], {"y": execution("MatMul", "y", "a, b", (3, 7)), "a": execution("Const", "a", "", (3, 5))})
    assert result == OperationCounts({"y": Count(210)}, 0)


def test_each_step_counts_with_its_own_batch_size() -> None:
    executions = {"conv": execution("Conv2D", "conv", "_arg_x_0_0, w"), "_arg_x_0_0": execution("_Arg", "_arg_x_0_0")}
    step_groups = [
        equivalent_steps(3, row("_arg_x_0_0", (4, 8, 8, 6)), row("conv", (4, 6, 6, 4))),
        equivalent_steps(1, row("_arg_x_0_0", (1, 8, 8, 6)), row("conv", (1, 6, 6, 4))),
    ]
    graph = [IMAGES, KERNEL, CONV]
    assert count([graph], executions, *step_groups).counts == {"conv": Count(4 * PER_EXAMPLE, 13 * PER_EXAMPLE)}
    assert count([graph], executions, step_groups[0]).counts == {"conv": Count(4 * PER_EXAMPLE)}


def test_a_fed_placeholder_has_the_shape_of_the_fed_tensor() -> None:
    graph = [IMAGES, node("sum", "Sum", ["x", "axes"], (6,)), node("axes", "Const", (), (3,))]
    executions = {"sum": SampleExecution("", b""), "_arg_x_0_0": execution("_Arg", "_arg_x_0_0")}
    result = count([graph], executions, equivalent_steps(1, row("_arg_x_0_0", (4, 8, 8, 6)), row("sum", (6,))))
    assert result.counts == {"sum": Count(4 * 8 * 8 * 6 - 6)}


def test_each_iteration_of_a_loop_is_counted() -> None:
    graph = [IMAGES, KERNEL, CONV]
    rows = row("conv", (4, 6, 6, 4), runs=5), row("conv", (2, 6, 6, 4), runs=1)
    result = count([graph], {"conv": execution("Conv2D", "conv", "x, w")}, equivalent_steps(2, *rows))
    assert result.counts == {"conv": Count(4 * PER_EXAMPLE, 2 * (5 * 4 + 2) * PER_EXAMPLE)}


def test_a_fused_op_counts_for_all_its_parts() -> None:
    graph = [IMAGES, KERNEL, CONV, node("b", "VariableV2", (), (4,)), BIAS, RELU]
    executions = {
        "relu": execution("_MklNativeFusedConv2D", "relu", "_arg_x_0_0, w, b"),
        "_arg_x_0_0": SampleExecution("", b""),
    }
    steps = equivalent_steps(1, row("_arg_x_0_0", (4, 8, 8, 6)), row("relu", (4, 6, 6, 4)))
    fused_count = 4 * PER_EXAMPLE + 2 * 4 * 6 * 6 * 4
    assert count([graph], executions, steps).counts == {"relu": Count(fused_count)}
    assert count([graph], executions, steps, op_log={"conv": 1000}).counts == {"relu": Count(1000 + 2 * 4 * 6 * 6 * 4)}
    executions["conv"] = execution("Conv2D", "conv", "_arg_x_0_0, w")
    with_conv = equivalent_steps(1, *steps.rows, row("conv", (4, 6, 6, 4)))
    counts = count([graph], executions, with_conv).counts
    assert counts["conv"] == Count(4 * PER_EXAMPLE)
    assert counts["relu"] == Count(4 * PER_EXAMPLE + 4 * 6 * 6 * 4), "a second convolution, with a bias"


def test_a_fused_gradient_counts_as_the_gradients_of_the_normalization_and_of_the_relu() -> None:
    vectors = [node(name, "Const", (), (4,)) for name in ("s", "m", "v", "r", "o")]
    images = [node(name, "Const", (), (4, 6, 6, 4)) for name in ("dy", "x", "y")]
    gradient = node("g", "FusedBatchNormGradV3", ["dy", "x", "s", "m", "v", "r"], (4, 6, 6, 4), (4,), (4,))
    executions = {"g": execution("_FusedBatchNormGradEx", "g", "dy, x, s, m, v, r, o, y", (4, 6, 6, 4))}
    result = count([[*vectors, *images, gradient]], executions, equivalent_steps(1, row("g", (4, 6, 6, 4))))
    assert result.counts == {"g": Count(10 * 4 * 6 * 6 * 4)}


def test_a_fused_op_without_parts_in_the_graph_is_counted_from_its_inputs() -> None:
    graph = [node("y", "BiasAdd", ["z", "b"], (4, 7)), node("z", "Unknown", (), (4, 7))]
    steps = equivalent_steps(1, row("a", (4, 5)), row("y", (4, 7)))
    for inputs in ("a, m, b", "a, m, b, ^c"):
        executions = {"y": execution("_FusedMatMul", "y", inputs, (4, 7)), "a": execution("V", "a", "", (4, 5))}
        assert count([graph], executions, steps).counts == {"y": Count(2 * 4 * 5 * 7 + 4 * 7)}


def test_nodes_without_a_graph_are_counted_from_their_labels() -> None:
    name = "ArithmeticOptimizer/AddOpsRewrite_add"
    executions = {name: execution("AddN", name, "p, q, r"), "p": execution("V", "p")}
    steps = equivalent_steps(2, row(name, (3, 4)), row("p", (3, 4)))
    assert count([[]], executions, steps).counts == {name: Count(24)}


def test_counts_of_the_op_log_take_precedence() -> None:
    executions = {"conv": execution("Conv2D", "conv", "x, w")}
    steps = equivalent_steps(1, row("conv", (4, 6, 6, 4)))
    op_log = {"conv": 77, "other": 5}
    assert count([[IMAGES, KERNEL, CONV]], executions, steps, op_log=op_log).counts == {"conv": Count(77)}


def test_nodes_with_unknown_shapes_are_left_out_and_their_number_is_returned() -> None:
    executions = {
        "conv": execution("Conv2D", "conv", "x, v"),
        "relu": execution("Relu", "relu", "conv"),
        "id": SampleExecution("", b""),
    }
    graph = [IMAGES, node("v", "Unknown", (), None), CONV, RELU, node("id", "Identity", ["x"], (-1, 8, 8, 6))]
    assert count([graph], executions, equivalent_steps(1, row("conv", None), row("relu", None))) == OperationCounts(
        {}, 2
    )
    assert count(
        [graph], {"relu": executions["relu"]}, equivalent_steps(1, row("relu", (0, 6, 6, 4)))
    ) == OperationCounts({}, 0)


def window_graphs(batch: int) -> list[Graph]:
    """Return the graphs of two callers, each followed by the graph of the function that it calls.

    The nodes of both callers have the same names, and so have those of both functions. The first
    caller takes batches of any size, the second caller takes batches of size ``batch``.
    """
    variable = node("v", "Placeholder", (), (), dtype=RESOURCE)
    graphs: list[Graph] = []
    for size, variables in ((-1, []), (batch, [variable])):
        graphs.append(
            [
                node("next", "IteratorGetNext", ["i"], (size, 8, 8, 6), types=(FLOAT,)),
                node("call", "PartitionedCall", ["next", *["v"] * len(variables)], (size, 6, 6, 4)),
                *variables,
            ]
        )
        data = node("data", "Placeholder", (), (size, 8, 8, 6))
        conv = node("conv", "Conv2D", ["data", "w"], (size, 6, 6, 4), strides=[1, 1, 1, 1])
        graphs.append([data, KERNEL, conv, *variables])
    return graphs


def test_in_a_window_the_batch_determines_the_shapes_and_the_function_that_ran() -> None:
    executions = {"next": SampleExecution("IteratorGetNext", b""), "conv": SampleExecution("Conv2D", b"")}
    example = 8 * 8 * 6 * 4
    for size, examples in ((5 * example, 5), (9 * example, 9)):
        steps = equivalent_steps(1, row("next", output_bytes=size), row("conv"))
        assert count(window_graphs(batch=9), executions, steps).counts == {"conv": Count(examples * PER_EXAMPLE)}


def test_a_function_with_another_batch_size_did_not_run() -> None:
    any_batch, batch_of_9 = window_graphs(batch=9)[:2], window_graphs(batch=9)[2:]
    executions = {"next": SampleExecution("IteratorGetNext", b""), "conv": SampleExecution("Conv2D", b"")}
    for examples in (9, 5):
        steps = equivalent_steps(1, row("next", output_bytes=examples * 8 * 8 * 6 * 4), row("conv"))
        assert count([*batch_of_9, *any_batch], executions, steps).counts == {"conv": Count(examples * PER_EXAMPLE)}


def test_in_a_profiler_window_a_node_of_a_loop_is_found_in_its_body() -> None:
    graph = [node("net/y", "MatMul", ["net/a", "net/b"], (3, 7)), node("net/a", "C", (), (3, 5))]
    executions = {"net/while/body/_1/net/y": SampleExecution("MatMul", b"")}
    steps = equivalent_steps(1, row("net/while/body/_1/net/y", runs=4))
    assert count([graph], executions, steps).counts == {"net/while/body/_1/net/y": Count(210)}


def test_nodes_whose_shapes_may_change_between_steps_are_found() -> None:
    graph = [IMAGES, KERNEL, CONV, node("w2", "Identity", ["w"], (3, 3, 6, 4)), node("l2", "L2Loss", ["w"], ())]
    constant, square = node("s", "Const", (), (2,)), node("n", "Square", ["s"], (2,))
    nodes = Nodes(
        definitions_of(graph, [constant, square], [node("s", "Const", (), (3,)), node("n", "Square", ["s"], (3,))])
    )
    assert open_nodes(nodes, ["x", "w", "conv", "w2", "l2", "_arg_x_0_0", "s", "n"]) == ["x", "conv", "_arg_x_0_0", "n"]
    assert batch_nodes(nodes, ["x", "IteratorGetNext"]) == ["IteratorGetNext"]


def test_the_common_shape_of_steps_has_their_equal_sizes() -> None:
    nodes = Nodes(definitions_of([IMAGES, KERNEL, CONV, RELU]))
    common_shapes = CommonShapes(nodes)
    common_shapes.add(StepShapes(nodes, [row("_arg_x_0_0", (4, 8, 8, 6))]))
    assert common_shapes.outputs()[InputSource("x", 0)] == (4, 8, 8, 6)
    common_shapes.add(StepShapes(nodes, [row("_arg_x_0_0", (9, 8, 8, 6))]))
    assert common_shapes.outputs()[InputSource("x", 0)] == (-1, 8, 8, 6)


# -- as TensorFlow's Python layer counts -----------------------------------------------------------


def exact_counts(graph: Graph, *signatures: tuple[str, bytes]) -> dict[str, int]:
    """Return the counts of TensorFlow's registry after traces with the output ``signatures``."""
    nodes = Nodes(definitions_of(graph))
    shapes = with_recorded_shapes({name: definitions[0] for name, definitions in nodes.by_name.items()}, signatures)
    return {
        name: node_count.per_execution
        for name, node_count in registry_counts(nodes, shapes, Parity(exact=True)).items()
    }


def test_exact_counts_use_the_first_shape_and_do_not_propagate_it() -> None:
    graph = [IMAGES, KERNEL, CONV, RELU, node("sq", "Square", ["conv"], (-1, 6, 6, 4))]
    signatures = [("conv", row("conv", (4, 6, 6, 4)).signature), ("conv", row("conv", (9, 6, 6, 4)).signature)]
    assert exact_counts(graph, *signatures) == {"sq": 4 * 6 * 6 * 4}
    signatures.insert(0, ("x", row("x", (4, 8, 8, 6)).signature))
    assert exact_counts(graph, *signatures) == {"sq": 576, "conv": 4 * PER_EXAMPLE}


def test_exact_counts_ignore_shapes_that_contradict_the_graph() -> None:
    nodes = Nodes(
        definitions_of([node("a", "V", (), (-1, 3)), node("b", "V", (), None, (2,)), node("c", "V", (), (5,))])
    )
    graph = {name: definitions[0] for name, definitions in nodes.by_name.items()}
    signatures = [
        ("a", row("a", (2, 4)).signature),
        ("a", row("a", (2,)).signature),
        ("b", row("b", (7,)).signature),
        ("b", row("b", None, (9,)).signature),
        ("c", row("c", (6,)).signature),
        ("gone", row("gone", (6,)).signature),
        ("a", row("a", (8, 3)).signature),
    ]
    shapes = with_recorded_shapes(graph, signatures)
    assert shapes == {"a": ((8, 3),), "b": ((), (2,)), "c": ((5,),)}


def test_an_iteration_of_a_loop_has_its_own_input_shapes() -> None:
    graph = [
        node("y", "Placeholder", (), (-1, 8)),
        node("axes", "Const", (), (2,)),
        node("sum", "Sum", ["y", "axes"], ()),
    ]
    signatures = {"y": [row("y", dims).signature for dims in ((4, 8), (2, 8))]}
    rows = (row("y", (4, 8)), row("y", (2, 8)), row("sum", (), runs=2))
    steps = equivalent_steps(3, *rows)._replace(loop_signatures=signatures)
    nodes = Nodes(definitions_of(graph))
    executions = {"sum": execution("Sum", "sum", "y, axes")}
    counter = OperationCounter(ExecutedNodes(nodes, executions, DEFAULT), {}, ["y", "sum"])
    counter.add(steps, StepShapes(nodes, steps.rows, steps.loop_signatures))
    assert counter.count() == OperationCounts({"sum": Count(31, 3 * (31 + 15))}, 0)
    other_counter = OperationCounter(ExecutedNodes(nodes, executions, DEFAULT), {}, ["y", "sum"])
    uneven_steps = steps._replace(rows=(*rows[:2], row("sum", (), runs=3)))
    other_counter.add(uneven_steps, StepShapes(nodes, uneven_steps.rows, uneven_steps.loop_signatures))
    assert other_counter.count() == OperationCounts({}, 1), "the iteration of each execution is unknown"
