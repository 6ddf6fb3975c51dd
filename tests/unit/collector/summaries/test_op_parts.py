"""The parts of op types."""

import pytest
from fakes.nodes import node, with_stack
from tfprof.collector.summaries.op_parts import _PARTS_OF, by_part, line_costs
from tfprof.collector.tfviews.nodes import Frame
from tfprof.collector.tfviews.options import BY, STEP


def test_there_is_a_rule_for_each_word() -> None:
    assert set(BY) == {STEP, *_PARTS_OF}


def test_code_without_a_line_has_no_cost_of_its_own() -> None:
    file = "/home/ada/train.py"
    nodes = [with_stack(node(f"n{line}", "Op", micros=9), Frame(file, line, "main")) for line in (-1, 0, 5)]
    assert list(line_costs(nodes, 1)) == [(file, 5)]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("model/conv/convolution", "model/conv"),
        ("gradient_tape/model/conv/convolution/Conv2DBackpropFilter", "model/conv"),
        ("gradient_tape/model/conv/ReluGrad", "model/conv"),
        ("model/dense/Cast_3/ReadVariableOp", "model/dense"),
        ("gradients/net/fc/MatMul_grad/MatMul_1", "net/fc"),
        ("gradients/net/fc/MatMul_grad/tuple/control_dependency", "net/fc"),
        ("StatefulPartitionedCall/while/body/_7/net/fc/MatMul", "net/fc"),
        ("adam/Mul_19/ReadVariableOp", "adam"),
        ("strided_slice", "(no layer)"),
    ],
)
def test_a_node_belongs_to_the_layer_of_its_forward_op(name: str, layer: str) -> None:
    nodes = [
        node(name, "Op"),
        node("model/conv/convolution", "Conv2D"),
        node("model/dense/Cast_1", "Cast"),
        node("adam/Mul_19", "Mul"),
    ]
    assert name in [node.name for node in by_part(nodes, "layer")[layer]]
