"""The places of nodes: the user's line, with its function or the layer of Keras."""

import pytest
from fakes.nodes import node, with_stack
from tfprof.collector.tfviews.nodes import Frame, Node
from tfprof.collector.tfviews.places import Places

SCRIPT, TRAIN = Frame("/home/ada/train.py", 40, "<module>"), Frame("/home/ada/train.py", 30, "main")
LAYER = Frame("/home/ada/keras/layers.py", 7, "call")
PACKAGES = "/venv/lib/python3.11/site-packages/"
TENSORFLOW = Frame(PACKAGES + "tensorflow/python/ops/math_ops.py", 5, "matmul")
KERAS = [
    Frame(PACKAGES + path, 399, "fit")
    for path in (
        "keras/src/trainer.py",
        "tf_keras/src/training.py",
        "tensorflow/python/keras/engine/training.py",
        "tensorflow_core/python/keras/engine/training.py",
    )
]


def place(node: Node, *others: Node) -> tuple[str, str]:
    """Return the line and the location of ``node``."""
    places = Places([node, *others])
    return places.line(node), places.location(node)


def test_a_line_of_the_user_stands_with_its_function() -> None:
    assert place(with_stack(node("a/MatMul", "MatMul"), SCRIPT, TRAIN, TENSORFLOW)) == (
        "train.py:30",
        "train.py:30 (main)",
    )
    assert place(with_stack(node("a/MatMul", "MatMul"), TENSORFLOW)) == ("", "")
    assert place(node("a/MatMul", "MatMul")) == ("", "")


@pytest.mark.parametrize("keras", KERAS, ids=lambda frame: frame.file.removeprefix(PACKAGES).split("/")[0])
def test_a_line_that_calls_keras_stands_with_the_layer(keras: Frame) -> None:
    product = with_stack(node("net/dense_1/MatMul", "MatMul"), SCRIPT, TRAIN, keras, TENSORFLOW)
    assert place(product) == ("train.py:30 (dense_1)",) * 2
    outside = with_stack(node("IteratorGetNext", "IteratorGetNext"), SCRIPT, TRAIN, keras)
    assert place(outside) == ("train.py:30", "train.py:30 (main)")


def test_a_layer_of_the_user_has_its_line() -> None:
    product = with_stack(node("net/mine/MatMul", "MatMul"), SCRIPT, KERAS[0], LAYER, TENSORFLOW)
    assert place(product) == ("layers.py:7", "layers.py:7 (call)")


def test_a_gradient_is_at_the_place_of_its_forward_op() -> None:
    forward = with_stack(node("net/dense/MatMul", "MatMul"), TRAIN, KERAS[0])
    gradient = with_stack(node("gradients/net/dense/MatMul_grad/MatMul", "MatMul"), SCRIPT, TENSORFLOW)
    assert place(gradient, forward) == ("train.py:30 (dense)",) * 2


def test_layers_of_one_name_keep_that_of_their_model() -> None:
    products = [with_stack(node(f"{net}/dense/MatMul", "MatMul"), TRAIN, KERAS[0]) for net in ("critic", "actor")]
    assert place(*products) == ("train.py:30 (critic/dense)",) * 2
