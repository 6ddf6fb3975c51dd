"""Nodes that TensorFlow added to a graph."""

import pytest
from fakes.nodes import CPU, GPU, node
from tfprof.collector.tfviews.nodes import Node
from tfprof.collector.tfviews.places import ADDED, group_added, is_added


def node_outside_graph(name: str, op: str, device: str = CPU, micros: int = 1) -> Node:
    """Return a node that no graph contains."""
    return node(name, op, device, micros=micros, runs=1)._replace(in_graph=False)


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("ConstantFolding/tower_0/gradients/Fill", "Const"),
        ("Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer", "Transpose"),
        ("ArithmeticOptimizer/HoistCommonFactor_Add_x", "Mul"),
        ("Relu-0-CastToFp16-AutoMixedPrecision", "Cast"),
        ("conv1/weights/read/_12", "_Send"),
        ("edge_5_conv1_SEND", "_Send"),
        ("^edge_4_NoOp", "_Recv"),
        ("Const__cf__3", "Const"),
        ("_arg_images_0_0", "_Arg"),
        ("_retval_Mean_0_0", "_Retval"),
        ("anything", "_HostRecv"),
    ],
)
def test_nodes_with_tensorflows_names_or_types_are_added(name: str, op: str) -> None:
    assert is_added(node_outside_graph(name, op))
    assert not is_added(node(name, op))  # a node of the graph is the user's


@pytest.mark.parametrize(("name", "op"), [("MatMul", "MatMul"), ("GatherV2_1", "GatherV2"), ("while/body/_1/a", "Mul")])
def test_the_users_eager_ops_and_functions_are_not_added(name: str, op: str) -> None:
    assert not is_added(node_outside_graph(name, op))


def test_added_nodes_are_merged_by_op_type() -> None:
    nodes = [
        node_outside_graph("ConstantFolding/a", "Const", micros=2),
        node_outside_graph("ConstantFolding/b", "Const", GPU, micros=3),
    ]
    result, names = group_added([*nodes, node_outside_graph("_arg_a_0_0", "_Arg"), node("a", "Mul", micros=5)])
    assert [(merged_node.name, merged_node.op, merged_node.stats.micros) for merged_node in result] == [
        (f"{ADDED}/Const", "Const", 5),
        (f"{ADDED}/_Arg", "_Arg", 1),
        ("a", "Mul", 5),
    ]
    assert result[0].devices == (CPU, GPU)
    assert names == {
        "ConstantFolding/a": f"{ADDED}/Const",
        "ConstantFolding/b": f"{ADDED}/Const",
        "_arg_a_0_0": f"{ADDED}/_Arg",
    }


def test_merged_nodes_can_be_inputs_of_one_node() -> None:
    result, _ = group_added([node_outside_graph("ConstantFolding/a", "Const"), node("a", "Mul")], linked=True)
    assert {merged_node.name: merged_node.facts.inputs for merged_node in result}[ADDED] == (f"{ADDED}/Const",)
    assert [merged_node.name for merged_node in group_added([node("a", "Mul")], linked=True)[0]] == ["a"]
