"""The formulas that TensorFlow registers under "flops": counts from attributes and shapes.

One operation is one addition, multiplication, comparison, …; a multiply-add counts as two.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

#: Sizes of dimensions, -1 if unknown; a scalar is (). None in place of Dims is an unknown rank.
Dims = tuple[int, ...]


class UnknownError(Exception):
    """An unknown shape or attribute that a formula needs."""


class FormulaArguments(NamedTuple):
    """Arguments of a formula: AttrValues by name, and shapes by position; None: an unknown rank."""

    attrs: Mapping[str, Any]
    inputs: Sequence[Dims | None]
    outputs: Sequence[Dims | None]

    def input(self, position: int) -> Dims:
        """Return the shape of an input; UnknownError unless it is fully known."""
        return _known_shape(self.inputs, position)

    def output(self, position: int = 0) -> Dims:
        """Return the shape of an output; UnknownError unless it is fully known."""
        return _known_shape(self.outputs, position)

    def ints(self, name: str) -> list[int]:
        """Return an attribute that is a list of integers; UnknownError without it."""
        if name not in self.attrs:
            raise UnknownError(name)
        return list(self.attrs[name].list.i)

    def boolean(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean attribute."""
        return bool(self.attrs[name].b) if name in self.attrs else default

    def text(self, name: str, default: str = "") -> str:
        """Return a text attribute."""
        return self.attrs[name].s.decode("utf-8", "replace") if name in self.attrs else default


Formula = Callable[[FormulaArguments], int]


def size(dims: Dims) -> int:
    """Return the number of elements of a shape."""
    return math.prod(dims)


def _known_shape(shapes: Sequence[Dims | None], position: int) -> Dims:
    dims = shapes[position] if position < len(shapes) else None
    if dims is None or min(dims, default=0) < 0:
        raise UnknownError
    return dims


def per_input_element(operations: int) -> Formula:
    """Return a formula that counts ``operations`` per element of the first input."""
    return lambda call: size(call.input(0)) * operations


def per_output_element(operations: int) -> Formula:
    """Return a formula that counts ``operations`` per element of the first output."""
    return lambda call: size(call.output()) * operations


def _add_n(call: FormulaArguments) -> int:
    """Count AddN; as in TensorFlow, control inputs count as terms."""
    return size(call.input(0)) * (len(call.inputs) - 1) if call.inputs else 0


def reduction(call: FormulaArguments) -> int:
    """Count a sum, or another reduction with as many operations."""
    return size(call.input(0)) - size(call.output())


def _nhwc(formula: Formula) -> Formula:
    """Return the formula ``formula``, restricted to the data format NHWC."""

    def count(call: FormulaArguments) -> int:
        if call.text("data_format", "NHWC") != "NHWC":
            raise UnknownError
        return formula(call)

    return count


def pool(call: FormulaArguments) -> int:
    """Count a pooling: one operation for each output and element of its window."""
    return math.prod(call.ints("ksize")) * size(call.output())


def average_pool_gradient(call: FormulaArguments) -> int:
    """Count the gradient of an average pooling.

    It is a product and a sum for each output and element of its window.
    """
    return math.prod(call.ints("ksize")) * size(call.input(1)) * 2


def max_pool_gradient(call: FormulaArguments) -> int:
    """Count the gradient of a max pooling: the pooling again, and one operation per output."""
    outputs = size(call.input(1))
    return math.prod(call.ints("ksize")) * outputs + outputs


def _convolution_gradient(
    image: Callable[[FormulaArguments], Dims], kernel: Callable[[FormulaArguments], Dims]
) -> Formula:
    """Return TensorFlow's formula for the gradient of a convolution, from its image and kernel.

    The formula assumes an output of the size image / strides.
    """

    def count(call: FormulaArguments) -> int:
        dims = image(call)
        channel_axis, first_axis = (1, 2) if call.text("data_format", "NHWC").startswith("NC") else (-1, 1)
        strides = call.ints("strides")
        # TensorFlow, too, divides floats.
        return int(
            2 * size(dims) * size(kernel(call)) / (dims[channel_axis] * (strides[first_axis] * strides[first_axis + 1]))
        )

    return count


CONV2D_INPUT: Final = _convolution_gradient(lambda call: call.output(), lambda call: call.input(1))
CONV2D_FILTER: Final = _convolution_gradient(lambda call: call.input(0), lambda call: call.output())


def _matmul(call: FormulaArguments) -> int:
    inner_axis = 0 if call.boolean("transpose_a") else 1
    return call.input(0)[inner_axis] * size(call.output()) * 2


def _batch_matmul(call: FormulaArguments) -> int:
    """Count BatchMatMul as TensorFlow does.

    TensorFlow reads `transpose_a`, an attribute that only MatMul has.
    """
    inner_axis = -2 if call.boolean("transpose_a") else -1
    return call.input(0)[inner_axis] * size(call.output()) * 2


def _convolution(axes: int) -> Formula:
    """Return TensorFlow's formula for a forward convolution.

    Each output reads the first ``axes`` dimensions of the kernel.
    """

    def count(call: FormulaArguments) -> int:
        call.input(0)  # must be known, although the formula does not use it
        return multiply_adds(call, axes)

    return count


def multiply_adds(call: FormulaArguments, axes: int) -> int:
    """Count a multiply-add for each output and each element of the kernel that it reads.

    An output reads the first ``axes`` dimensions of the kernel.
    """
    return size(call.output()) * math.prod(call.input(1)[:axes]) * 2


REGISTRY: Final[Mapping[str, Formula]] = {
    **dict.fromkeys(("Reciprocal", "Square", "Log", "Neg", "AssignSub", "AssignAdd"), per_input_element(1)),
    "Rsqrt": per_input_element(2),
    "Softmax": per_input_element(5),
    "L2Loss": lambda call: size(call.input(0)) * 3 - 1,
    **dict.fromkeys(("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Pow"), per_output_element(1)),
    **dict.fromkeys(("GreaterEqual", "Greater", "LessEqual", "Less", "Equal", "NotEqual"), per_output_element(1)),
    "SquaredDifference": per_output_element(2),
    "RsqrtGrad": per_output_element(4),
    "Mean": lambda call: size(call.input(0)) + 0 * size(call.output()),  # both must be known
    **dict.fromkeys(("Sum", "ArgMax", "ArgMin", "BiasAddGrad"), reduction),
    **dict.fromkeys(("AvgPool", "MaxPool"), _nhwc(pool)),
    "AvgPoolGrad": _nhwc(average_pool_gradient),
    "MaxPoolGrad": _nhwc(max_pool_gradient),
    "Conv2DBackpropInput": _nhwc(CONV2D_INPUT),
    "Conv2DBackpropFilter": _nhwc(CONV2D_FILTER),
    "AddN": _add_n,
    "MatMul": _matmul,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _batch_matmul),
    "Conv2D": _convolution(3),
    "Conv3D": _convolution(4),
    **dict.fromkeys(("DepthwiseConv2dNative", "Dilation2D"), _convolution(2)),
    "BiasAdd": per_input_element(1),
}
