"""Which op a gradient belongs to, on graphs made by hand, with the names that TensorFlow gives."""

from tfprof.collector.tfviews.nodes import Frame
from tfprof.collector.tfviews.stacks import GraphOp, forward_ops

TRAIN = Frame("train.py", 9, "train")


def forward(*rows: tuple[str, str, str, str]) -> dict[str, str]:
    """Return the forward ops; rows: name, op type, function for the gradient, inputs."""
    stacks = {name: (TRAIN, *called(function)) if function != "no stack" else () for name, _, function, _ in rows}
    inputs = {name: sources.split() for name, _, _, sources in rows}
    return forward_ops(
        [GraphOp(1, name, op) for name, op, _, _ in rows],
        {name: stack for name, stack in stacks.items() if stack},
        lambda _, name: inputs[name],
    )


def called(function: str) -> tuple[Frame, ...]:
    """Return the frames below a tape that calls ``function``; none without a name."""
    names = ("_gradient_function", function, "wrapper") if function else ()
    return tuple(Frame("backprop.py", 1, name) for name in names)


def test_names_of_tf_gradients_have_the_name_of_the_forward_op() -> None:
    names = (
        "gradients/a/MatMul_grad/MatMul",
        "training/Adam/gradients/gradients/a/MatMul_grad/MatMul_1",
        "gradients_1/gradients/a/MatMul_grad/mul_grad/Mul",
        "gradients/unknown_grad/Mul",
        "gradients/Shape",
    )
    found = forward(("a/MatMul", "MatMul", "", ""), *[(name, "MatMul", "", "") for name in names])
    assert found == dict.fromkeys(names[:3], "a/MatMul")


def test_a_gradient_of_a_tape_is_at_the_op_of_its_scope_and_kind() -> None:
    found = forward(
        ("a/MatMul", "MatMul", "", ""),
        ("a/MatMul/ReadVariableOp", "ReadVariableOp", "", ""),
        ("a/add", "AddV2", "", ""),
        ("a/Mean", "Mean", "", ""),
        ("gradient_tape/a/MatMul/MatMul_1", "MatMul", "_MatMulGrad", ""),
        ("gradient_tape/a/Sum", "Sum", "_AddGrad", ""),
        ("gradient_tape/a/MatMul/shape", "Const", "_MeanGrad", ""),
        ("gradient_tape/a/Tanh", "Tanh", "_TanhGrad", ""),  # no forward op has this kind
        ("gradient_tape/a/Custom", "Mul", "", ""),
    )
    assert found == {
        "gradient_tape/a/MatMul/MatMul_1": "a/MatMul",
        "gradient_tape/a/Sum": "a/add",
        "gradient_tape/a/MatMul/shape": "a/Mean",
    }


LAYERS = (
    ("Reshape", "Reshape", "", "x"),
    ("Conv2D", "Conv2D", "", "Reshape read"),
    ("BiasAdd", "BiasAdd", "", "Conv2D b"),
    ("Conv2D_1", "Conv2D", "", "BiasAdd read_1"),
    ("BiasAdd_1", "BiasAdd", "", "Conv2D_1 b_1"),
)


def test_of_several_ops_that_one_is_meant_whose_tensors_the_gradient_uses() -> None:
    found = forward(
        *LAYERS,
        ("gradient_tape/BiasAddGrad", "BiasAddGrad", "_BiasAddGrad", "ones"),
        ("gradient_tape/Input", "Conv2DBackpropInput", "_Conv2DGrad", "shape read_1 ones"),
        ("gradient_tape/BiasAddGrad_9", "BiasAddGrad", "_BiasAddGrad", "gradient_tape/Input"),
        ("gradient_tape/Filter_1", "Conv2DBackpropFilter", "_Conv2DGrad", "Reshape shape gradient_tape/Input"),
    )
    assert found["gradient_tape/Input"] == "Conv2D_1"
    assert found["gradient_tape/BiasAddGrad_9"] == "BiasAdd"  # what it uses is the gradient of an op that uses BiasAdd
    assert found["gradient_tape/Filter_1"] == "Conv2D"


def test_else_a_tape_goes_through_the_ops_backwards_and_one_too_few_decides_nothing() -> None:
    gradients = [(f"gradient_tape/Tile{end}", "Tile", "_MeanGrad", "ones") for end in ("", "_1")]
    means = [(f"Mean{end}", "Mean", "", "x y") for end in ("", "_1")]
    assert forward(*means, *gradients) == {"gradient_tape/Tile": "Mean_1", "gradient_tape/Tile_1": "Mean"}
    assert forward(*means, gradients[0]) == {}


def test_an_op_without_a_stack_is_no_forward_op() -> None:
    assert forward(("MatMul", "MatMul", "no stack", ""), ("gradients/MatMul_grad/Mul", "Mul", "", "")) == {}
