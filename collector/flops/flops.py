"""Counts the operations of one execution of an op from its attributes and shapes.

Parity selects the formulas: those of TensorFlow's registry, or tfprof's own. tfprof's formulas
correct wrong ones of the registry, and cover ops that the registry lacks.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..tfviews.parity import Parity
from .einsum import einsum_ops
from .kernels import op_type
from .registry import (
    CONV2D_FILTER,
    CONV2D_INPUT,
    REGISTRY,
    Dims,
    Formula,
    FormulaArguments,
    UnknownError,
    average_pool_gradient,
    max_pool_gradient,
    multiply_adds,
    per_input_element,
    per_output_element,
    pool,
    reduction,
    size,
)


def float_ops(
    op: str,
    attrs: Mapping[str, Any],
    inputs: Sequence[Dims | None],
    outputs: Sequence[Dims | None],
    parity: Parity,
) -> int | None:
    """Return the operations of one execution.

    ``inputs`` and ``outputs``: shapes by position. Return None if ``op`` has no formula, or if a
    necessary shape or attribute is unknown.
    """
    count = formula(op, parity)
    if count is None:
        return None
    try:
        return count(FormulaArguments(attrs, inputs, outputs))
    except (UnknownError, IndexError, ValueError, ZeroDivisionError):
        return None


def formula(op: str, parity: Parity) -> Formula | None:
    """Return the formula of ``op`` under ``parity``; None if there is none."""
    if not parity.has_own_formulas:
        return None if op in parity.missing_formulas else REGISTRY.get(op)
    op = op_type(op)
    return OWN_FORMULAS.get(op) or _quantized_formula(op)


def _per_element(times: int) -> Formula:
    """Return a formula for element-wise ops: ``times`` operations per element.

    The output and the first input have the same shape, so one known shape suffices.
    """

    def count(call: FormulaArguments) -> int:
        try:
            return size(call.output()) * times
        except UnknownError:
            return size(call.input(0)) * times

    return count


def _reduction(call: FormulaArguments) -> int:
    """Count a sum; UnknownError if the shapes contradict each other."""
    number = reduction(call)
    if number < 0:
        raise UnknownError
    return number


def _add_n(call: FormulaArguments) -> int:
    """Count AddN by its number of terms."""
    terms = call.attrs["N"].i if "N" in call.attrs else len(call.inputs)
    return size(call.output()) * max(0, terms - 1)


def _contraction(call: FormulaArguments) -> int:
    """Count a matrix product, or a batch of matrix products.

    The size of one input matrix, divided by the dimension that it shares with the result, is the
    dimension that is summed over. This holds for transposed and adjoint matrices, too. One known
    matrix suffices.
    """
    result = call.output()
    inner_sizes = set()
    for matrix, side in ((0, -2), (1, -1)):
        dims = call.inputs[matrix]
        if dims is not None and len(dims) > 1 and min(dims[-2:]) >= 0 and result[side]:
            if result[side] not in dims[-2:]:
                raise UnknownError  # the shapes are of different executions
            inner_sizes.add(dims[-2] * dims[-1] // result[side])
    if len(inner_sizes) == 1:
        return inner_sizes.pop() * size(result) * 2
    if size(result) == 0:
        return 0
    raise UnknownError


def _forward_convolution(axes: int) -> Formula:
    return lambda call: multiply_adds(call, axes)


def _conv_gradient(axes: int, kernel: Callable[[FormulaArguments], Dims], fallback: Formula | None = None) -> Formula:
    """Return a formula for the gradient of a convolution: the count of the forward convolution.

    Input 2 is the gradient of the convolution's output. The count does not depend on padding and
    data format, unlike that of TensorFlow's formula ``fallback``, which is used if the shape of
    input 2 is unknown.
    """

    def count(call: FormulaArguments) -> int:
        try:
            return size(call.input(2)) * math.prod(kernel(call)[:axes]) * 2
        except UnknownError:
            if fallback is None:
                raise
            return fallback(call)

    return count


def _normalization(call: FormulaArguments) -> int:
    """Count a batch normalization: Mul, Add; in training also Mean, SquaredDifference, Mean."""
    return size(call.output()) * (6 if call.boolean("is_training", default=True) else 2)


def _normalization_gradient(call: FormulaArguments) -> int:
    """Count the gradient of a batch normalization; it has more operations in training.

    It consists of two sums, the normalized input, and the product of that input and the gradient.
    """
    return size(call.output()) * (9 if call.boolean("is_training", default=True) else 6)


def _normalization_with_relu(call: FormulaArguments) -> int:
    """Count a batch normalization, a Relu, and the addition of a further input if there is one."""
    return _normalization(call) + size(call.output()) * (1 + max(0, len(call.inputs) - 5))


def _fused(contraction: Formula, other_inputs: int = 2) -> Formula:
    """Return a formula for ``contraction`` fused with element-wise ops on its outputs.

    ``other_inputs``: number of inputs that the element-wise ops do not use.
    """

    def count(call: FormulaArguments) -> int:
        fused_ops = (
            len(call.attrs["fused_ops"].list.s)
            if "fused_ops" in call.attrs
            else max(0, len(call.inputs) - other_inputs)
        )
        return contraction(call) + fused_ops * size(call.output())

    return count


def _kernel_and_bias_gradient(call: FormulaArguments) -> int:
    """Count the gradients of a convolution's kernel and bias.

    The gradient of the bias is a sum over all dimensions but the last.
    """
    return OWN_FORMULAS["Conv2DBackpropFilter"](call) + size(call.input(2)) - call.output()[-1]


def _unary_composition(call: FormulaArguments) -> int:
    """Count a chain of element-wise ops."""
    if "op_names" not in call.attrs:
        raise UnknownError
    return len(call.attrs["op_names"].list.s) * size(call.output())


def _convolution_of(kernel: int) -> Formula:
    """Return a formula for a convolution whose kernel is input ``kernel`` instead of input 1."""
    return lambda call: size(call.output()) * math.prod(call.input(kernel)[:3]) * 2


def _einsum(call: FormulaArguments) -> int:
    count = call.attrs["N"].i if "N" in call.attrs else len(call.inputs)
    return einsum_ops(call.text("equation"), [call.input(position) for position in range(count)], call.output())


def _kernel_input(call: FormulaArguments) -> Dims:
    return call.input(1)


def _kernel_output(call: FormulaArguments) -> Dims:
    return call.output()


_UNARY: Final = (
    *("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1"),
    *("BesselK1e", "BesselY0", "BesselY1", "Dawsn", "Digamma", "Erfinv", "Expint", "FresnelCos", "FresnelSin"),
    *("Lgamma", "Ndtri", "Spence"),
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Erfc", "Exp"),
    *("Expm1", "Floor", "Inv", "LeakyRelu", "Log1p", "Relu", "Relu6", "Rint", "Round", "Selu", "Sigmoid", "Sign"),
    *("Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh"),
    *("EluGrad", "InvGrad", "LeakyReluGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SigmoidGrad"),
    *("SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad"),
)
#: Functions of one tensor, element by element, and their gradients. TensorFlow's optimizer fuses
#: chains of such functions into one op.
ELEMENT_WISE: Final = frozenset({*_UNARY, "Log", "Neg", "Reciprocal", "Rsqrt", "Square"})
_BINARY: Final = (
    *("Atan2", "Div", "DivNoNan", "FloorDiv", "FloorMod", "Mod", "MulNoNan", "TruncateDiv", "TruncateMod"),
    *("Igamma", "IgammaGradA", "Igammac", "NextAfter", "Polygamma", "Xdivy", "Xlog1py", "Xlogy", "Zeta"),
)
#: Ops whose count depends on the size of the output only.
OUTPUT_SIZE_OPS: Final = ELEMENT_WISE | {*_BINARY, "Add", "AddV2", "Maximum", "Minimum", "Mul", "Pow", "RealDiv", "Sub"}
_POOLS: Final = (
    *("AvgPool", "MaxPool", "AvgPool3D", "MaxPool3D", "MaxPoolWithArgmax"),
    *("QuantizedAvgPool", "QuantizedMaxPool", "_QuantizedMaxPool3D"),
)
_MATRIX_PRODUCTS: Final = ("MatMul", "SparseMatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")

OWN_FORMULAS: Final[Mapping[str, Formula]] = {
    **REGISTRY,
    **dict.fromkeys(("Reciprocal", "Square", "Log", "Neg", "AssignSub", "AssignAdd"), _per_element(1)),
    **dict.fromkeys(("BiasAdd", "BiasAddV1"), _per_element(1)),
    "Rsqrt": _per_element(2),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _per_element(5)),
    "Mean": per_input_element(1),
    **dict.fromkeys(("Sum", "Max", "Min", "Prod", "ArgMax", "ArgMin", "BiasAddGrad"), _reduction),
    **dict.fromkeys(_UNARY, _per_element(1)),
    **dict.fromkeys(_BINARY, per_output_element(1)),
    **dict.fromkeys(
        ("QuantizedAdd", "QuantizedBiasAdd", "QuantizedMul", "QuantizedRelu", "QuantizedRelu6"), per_output_element(1)
    ),
    "QuantizedBatchNormWithGlobalNormalization": per_output_element(2),
    "QuantizedInstanceNorm": per_output_element(6),
    **dict.fromkeys(("AssignAddVariableOp", "AssignSubVariableOp"), lambda call: size(call.input(1))),
    **dict.fromkeys(_POOLS, pool),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), average_pool_gradient),
    **dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), max_pool_gradient),
    **{f"Conv2DBackpropInput{version}": _conv_gradient(3, _kernel_input, CONV2D_INPUT) for version in ("", "V2")},
    **{f"Conv2DBackpropFilter{version}": _conv_gradient(3, _kernel_output, CONV2D_FILTER) for version in ("", "V2")},
    **{f"Conv3DBackpropInput{version}": _conv_gradient(4, _kernel_input) for version in ("", "V2")},
    **{f"Conv3DBackpropFilter{version}": _conv_gradient(4, _kernel_output) for version in ("", "V2")},
    "DepthwiseConv2dNativeBackpropInput": _conv_gradient(2, _kernel_input),
    "DepthwiseConv2dNativeBackpropFilter": _conv_gradient(2, _kernel_output),
    "AddN": _add_n,
    **dict.fromkeys(_MATRIX_PRODUCTS, _contraction),
    "Conv2D": _forward_convolution(3),
    "Conv3D": _forward_convolution(4),
    **dict.fromkeys(("DepthwiseConv2dNative", "Dilation2D"), _forward_convolution(2)),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _normalization),
    **{f"FusedBatchNormGrad{version}": _normalization_gradient for version in ("", "V2", "V3")},
    "BatchNormWithGlobalNormalization": per_output_element(2),
    "_FusedBatchNormEx": _normalization_with_relu,
    "_FusedBatchNormGradEx": lambda call: _normalization_gradient(call) + size(call.output()),
    **dict.fromkeys(("LayerNorm", "FusedInstanceNorm"), per_output_element(6)),
    "Swish": per_output_element(2),
    "FusedMish": per_output_element(3),
    "_UnaryOpsComposition": _unary_composition,
    "Einsum": _einsum,
    "Conv": _forward_convolution(-1),
    "PadWithConv2D": _forward_convolution(3),
    "PadWithFusedConv2D": _fused(_forward_convolution(3), other_inputs=3),
    "Conv2DWithBias": lambda call: _forward_convolution(3)(call) + size(call.output()),
    "Conv2DBackpropFilterWithBias": _kernel_and_bias_gradient,
    "FusedPadConv2D": _convolution_of(2),
    "FusedResizeAndPadConv2D": _convolution_of(3),
    "_FusedConv2D": _fused(_forward_convolution(3)),
    "_FusedConv3D": _fused(_forward_convolution(4)),
    "_FusedDepthwiseConv2dNative": _fused(_forward_convolution(2)),
    **dict.fromkeys(("_FusedMatMul", "_FusedBatchMatMulV2"), _fused(_contraction)),
}

_QUANTIZED: Final = re.compile("_?(Fused)?Quantized(Conv2D|Conv3D|DepthwiseConv2D|MatMul|BatchMatMul)([A-Z]\\w*)?")
_QUANTIZED_FORMULAS: Final[Mapping[str, Formula]] = {
    "Conv2D": _forward_convolution(3),
    "Conv3D": _forward_convolution(4),
    "DepthwiseConv2D": _forward_convolution(2),
    "MatMul": _contraction,
    "BatchMatMul": _contraction,
}


def _quantized_formula(op: str) -> Formula | None:
    """Return the formula of a quantized op, None for another op.

    It is the formula of the same op without quantization; fused element-wise ops are ignored.
    """
    match = _QUANTIZED.fullmatch(op)
    return _QUANTIZED_FORMULAS[match[2]] if match else None
