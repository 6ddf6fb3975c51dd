"""Operation counts of one execution of an op: a written table of formulas over its attributes and shapes.

What TensorFlow registers under "flops" is counted as there, to the number. What it counts wrongly or not at all is counted
unless the rules are strict: the second table. One operation is one addition, multiplication, comparison …; a
multiply-add is two.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tfprof.collector.views.einsum import einsum_ops
from tfprof.collector.views.kernels import op_type
from tfprof.collector.views.rules import Rules

#: Sizes of dimensions, -1 where one is not known; a scalar is (). None in place of it: not even the rank is known.
Dims = tuple[int, ...]


class UnknownError(Exception):
    """A shape or an attribute that a formula needs is not known."""


class Call(NamedTuple):
    """What a formula looks at: AttrValues by name, and shapes; inputs by position, control inputs (None) too."""

    attrs: Mapping[str, Any]
    inputs: Sequence[Dims | None]
    outputs: Sequence[Dims | None]

    def input(self, position: int) -> Dims:
        """Return the shape of an input, fully known."""
        return _whole(self.inputs, position)

    def output(self, position: int = 0) -> Dims:
        """Return the shape of an output, fully known."""
        return _whole(self.outputs, position)

    def ints(self, name: str) -> list[int]:
        """Return a list attribute."""
        if name not in self.attrs:
            raise UnknownError(name)
        return list(self.attrs[name].list.i)

    def truth(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean attribute."""
        return bool(self.attrs[name].b) if name in self.attrs else default

    def text(self, name: str, default: str = "") -> str:
        """Return a text attribute."""
        return self.attrs[name].s.decode("utf-8", "replace") if name in self.attrs else default


Formula = Callable[[Call], int]


def float_ops(
    op: str,
    attrs: Mapping[str, Any],
    inputs: Sequence[Dims | None],
    outputs: Sequence[Dims | None],
    rules: Rules,
) -> int | None:
    """Return how many operations one execution takes; None where there is no formula, or a shape that it needs is not known.

    ``inputs`` and ``outputs`` are shapes by position, control inputs (None) among the inputs.
    """
    found = formula(op, rules)
    if found is None:
        return None
    try:
        return found(Call(attrs, inputs, outputs))
    except (UnknownError, IndexError, ValueError, ZeroDivisionError):
        return None


def formula(op: str, rules: Rules) -> Formula | None:
    """Return how ``op`` is counted under ``rules``; None where it is not."""
    if rules.strict:
        return None if rules.old and op in NEWER else REGISTRY.get(op)
    op = op_type(op)
    return BETTER.get(op) or _quantized(op)


def size(dims: Dims) -> int:
    """Return the number of elements."""
    return math.prod(dims)


def _whole(shapes: Sequence[Dims | None], position: int) -> Dims:
    dims = shapes[position] if position < len(shapes) else None
    if dims is None or min(dims, default=0) < 0:
        raise UnknownError
    return dims


# -- what TensorFlow registers ---------------------------------------------------------------------


def _of_input(times: int) -> Formula:
    return lambda call: size(call.input(0)) * times


def _of_output(times: int) -> Formula:
    return lambda call: size(call.output()) * times


def _of_all_inputs(call: Call) -> int:
    """Count AddN: control inputs count as terms."""
    return size(call.input(0)) * (len(call.inputs) - 1) if call.inputs else 0


def _reduction(call: Call) -> int:
    return size(call.input(0)) - size(call.output())


def _nhwc(counted: Formula) -> Formula:
    """Return ``counted`` for one data format only."""

    def of(call: Call) -> int:
        if call.text("data_format", "NHWC") != "NHWC":
            raise UnknownError
        return counted(call)

    return of


def _pool(call: Call) -> int:
    return math.prod(call.ints("ksize")) * size(call.output())


def _average_pool_gradient(call: Call) -> int:
    return math.prod(call.ints("ksize")) * size(call.input(1)) * 2


def _max_pool_gradient(call: Call) -> int:
    pooled = size(call.input(1))
    return math.prod(call.ints("ksize")) * pooled + pooled


def _convolution_gradient(image: Callable[[Call], Dims], kernel: Callable[[Call], Dims]) -> Formula:
    """Return the count from the forward image and kernel: as if it were padded to yield image / strides."""

    def of(call: Call) -> int:
        dims = image(call)
        channels, first = (1, 2) if call.text("data_format", "NHWC").startswith("NC") else (-1, 1)
        strides = call.ints("strides")
        # A quotient of floats, as TensorFlow has it.
        return int(2 * size(dims) * size(kernel(call)) / (dims[channels] * (strides[first] * strides[first + 1])))

    return of


_CONV2D_INPUT: Final = _convolution_gradient(lambda call: call.output(), lambda call: call.input(1))
_CONV2D_FILTER: Final = _convolution_gradient(lambda call: call.input(0), lambda call: call.output())


def _matmul(call: Call) -> int:
    rows = 0 if call.truth("transpose_a") else 1
    return call.input(0)[rows] * size(call.output()) * 2


def _batch_matmul(call: Call) -> int:
    """Count BatchMatMul with an attribute that MatMul has, and it has not: see ``_contraction``."""
    rows = -2 if call.truth("transpose_a") else -1
    return call.input(0)[rows] * size(call.output()) * 2


def _convolution(taken: int) -> Formula:
    """Return the count of a forward convolution, of which each output takes the first ``taken`` dimensions of the kernel."""

    def of(call: Call) -> int:
        call.input(0)  # must be known, though it is not looked at
        return _window(call, taken)

    return of


def _window(call: Call, taken: int) -> int:
    return size(call.output()) * math.prod(call.input(1)[:taken]) * 2


REGISTRY: Final[Mapping[str, Formula]] = {
    **dict.fromkeys(("Reciprocal", "Square", "Log", "Neg", "AssignSub", "AssignAdd"), _of_input(1)),
    "Rsqrt": _of_input(2),
    "Softmax": _of_input(5),
    "L2Loss": lambda call: size(call.input(0)) * 3 - 1,
    **dict.fromkeys(("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Pow"), _of_output(1)),
    **dict.fromkeys(("GreaterEqual", "Greater", "LessEqual", "Less", "Equal", "NotEqual"), _of_output(1)),
    "SquaredDifference": _of_output(2),
    "RsqrtGrad": _of_output(4),
    "Mean": lambda call: size(call.input(0)) + 0 * size(call.output()),  # both must be known
    **dict.fromkeys(("Sum", "ArgMax", "ArgMin", "BiasAddGrad"), _reduction),
    **dict.fromkeys(("AvgPool", "MaxPool"), _nhwc(_pool)),
    "AvgPoolGrad": _nhwc(_average_pool_gradient),
    "MaxPoolGrad": _nhwc(_max_pool_gradient),
    "Conv2DBackpropInput": _nhwc(_CONV2D_INPUT),
    "Conv2DBackpropFilter": _nhwc(_CONV2D_FILTER),
    "AddN": _of_all_inputs,
    "MatMul": _matmul,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _batch_matmul),
    "Conv2D": _convolution(3),
    "Conv3D": _convolution(4),
    **dict.fromkeys(("DepthwiseConv2dNative", "Dilation2D"), _convolution(2)),
    "BiasAdd": _of_input(1),
}
#: Of these, what TensorFlow 1.15 does not have.
NEWER: Final = frozenset({"AddV2", "BatchMatMulV2", "BatchMatMulV3"})


# -- what it counts wrongly or not at all ----------------------------------------------------------


def _per_element(times: int) -> Formula:
    """Return the count of an op whose first input and output are alike: either will do."""

    def of(call: Call) -> int:
        try:
            return size(call.output()) * times
        except UnknownError:
            return size(call.input(0)) * times

    return of


def _terms(call: Call) -> int:
    """Count AddN by what it adds."""
    terms = call.attrs["N"].i if "N" in call.attrs else len(call.inputs)
    return size(call.output()) * max(0, terms - 1)


def _contraction(call: Call) -> int:
    """Count a (batch) matrix product: a matrix's elements over those of its side of the result are what is summed over.

    So it does not matter which of the two is transposed, or adjoint; and one of them will do.
    """
    result = call.output()
    for matrix, side in ((0, -2), (1, -1)):
        dims = call.inputs[matrix]
        if dims is not None and len(dims) > 1 and min(dims[-2:]) >= 0 and result[side]:
            return dims[-2] * dims[-1] // result[side] * size(result) * 2
    if size(result) == 0:
        return 0
    raise UnknownError


def _forward(taken: int) -> Formula:
    return lambda call: _window(call, taken)


def _as_forward(taken: int, kernel: Callable[[Call], Dims]) -> Formula:
    """Return the count of a convolution's gradient: that of the convolution, whose output is the third input."""
    return lambda call: size(call.input(2)) * math.prod(kernel(call)[:taken]) * 2


def _normalization(call: Call) -> int:
    """Count a batch normalization by the ops that it stands for: Mean, SquaredDifference, Mean; then Mul, Add."""
    return size(call.output()) * (6 if call.truth("is_training", default=True) else 2)


def _normalization_gradient(call: Call) -> int:
    """Count it likewise: two sums, the normalized input and its product with the gradient; four more while training."""
    return size(call.output()) * (9 if call.truth("is_training", default=True) else 6)


def _fused(contraction: Formula) -> Formula:
    """Return the count of ``contraction`` and of what is done with each of its outputs right away."""

    def of(call: Call) -> int:
        more = len(call.attrs["fused_ops"].list.s) if "fused_ops" in call.attrs else max(0, len(call.inputs) - 2)
        return contraction(call) + more * size(call.output())

    return of


def _einsum(call: Call) -> int:
    count = call.attrs["N"].i if "N" in call.attrs else len(call.inputs)
    return einsum_ops(call.text("equation"), [call.input(position) for position in range(count)], call.output())


def _kernel_input(call: Call) -> Dims:
    return call.input(1)


def _kernel_output(call: Call) -> Dims:
    return call.output()


_UNARY: Final = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Erfc", "Exp"),
    *("Expm1", "Floor", "Inv", "LeakyRelu", "Log1p", "Relu", "Relu6", "Rint", "Round", "Selu", "Sigmoid", "Sign"),
    *("Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh"),
    *("EluGrad", "InvGrad", "LeakyReluGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SigmoidGrad"),
    *("SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad"),
)
_BINARY: Final = (
    *("Atan2", "Div", "DivNoNan", "FloorDiv", "FloorMod", "Mod", "MulNoNan", "TruncateDiv", "TruncateMod"),
    *("Xdivy", "Xlogy"),
)
_POOLS: Final = ("AvgPool", "MaxPool", "AvgPool3D", "MaxPool3D", "MaxPoolWithArgmax")
_MATRIX_PRODUCTS: Final = ("MatMul", "SparseMatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")

BETTER: Final[Mapping[str, Formula]] = {
    **REGISTRY,
    **dict.fromkeys(("Reciprocal", "Square", "Log", "Neg", "AssignSub", "AssignAdd"), _per_element(1)),
    **dict.fromkeys(("BiasAdd", "BiasAddV1"), _per_element(1)),
    "Rsqrt": _per_element(2),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _per_element(5)),
    "Mean": _of_input(1),
    **dict.fromkeys(("Max", "Min", "Prod"), _reduction),
    **dict.fromkeys(_UNARY, _per_element(1)),
    **dict.fromkeys(_BINARY, _of_output(1)),
    **dict.fromkeys(("AssignAddVariableOp", "AssignSubVariableOp"), lambda call: size(call.input(1))),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), _average_pool_gradient),
    **dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), _max_pool_gradient),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv2DBackpropInputV2"), _CONV2D_INPUT),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv2DBackpropFilterV2"), _CONV2D_FILTER),
    **dict.fromkeys(("Conv3DBackpropInput", "Conv3DBackpropInputV2"), _as_forward(4, _kernel_input)),
    **dict.fromkeys(("Conv3DBackpropFilter", "Conv3DBackpropFilterV2"), _as_forward(4, _kernel_output)),
    "DepthwiseConv2dNativeBackpropInput": _as_forward(2, _kernel_input),
    "DepthwiseConv2dNativeBackpropFilter": _as_forward(2, _kernel_output),
    "AddN": _terms,
    **dict.fromkeys(_MATRIX_PRODUCTS, _contraction),
    "Conv2D": _forward(3),
    "Conv3D": _forward(4),
    **dict.fromkeys(("DepthwiseConv2dNative", "Dilation2D"), _forward(2)),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _normalization),
    **{f"FusedBatchNormGrad{version}": _normalization_gradient for version in ("", "V2", "V3")},
    "_FusedBatchNormEx": _normalization,
    "Einsum": _einsum,
    "_FusedConv2D": _fused(_forward(3)),
    "_FusedConv3D": _fused(_forward(4)),
    "_FusedDepthwiseConv2dNative": _fused(_forward(2)),
    **dict.fromkeys(("_FusedMatMul", "_FusedBatchMatMulV2"), _fused(_contraction)),
}

_QUANTIZED: Final = re.compile("_?Quantized(Fused)?(Conv2D|Conv3D|DepthwiseConv2D|MatMul|BatchMatMul)([A-Z]\\w*)?")
_OF_QUANTIZED: Final[Mapping[str, Formula]] = {
    "Conv2D": _forward(3),
    "Conv3D": _forward(4),
    "DepthwiseConv2D": _forward(2),
    "MatMul": _contraction,
    "BatchMatMul": _contraction,
}


def _quantized(op: str) -> Formula | None:
    """Return the count of a quantized op: that of its contraction, whatever it does with the outputs."""
    match = _QUANTIZED.fullmatch(op)
    return _OF_QUANTIZED[match[2]] if match else None
