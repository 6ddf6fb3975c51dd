"""The parts of op types."""

import pytest
from fakes.nodes import node
from tfprof.collector.summaries.op_parts import _PARTS_OF, by_part
from tfprof.collector.tfviews.options import BY, STEP


def test_there_is_a_rule_for_each_word() -> None:
    assert set(BY) == {STEP, *_PARTS_OF}


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
