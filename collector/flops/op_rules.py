"""Rules for each op type: which products of sizes of inputs and outputs are equal.

The rules are used to infer open sizes from a few known ones. They assume what nearly always holds:
open sizes are not broadcast, and a reshape keeps the order of open sizes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from .constraints import (
    EqualProducts,
    Op,
    Rule,
    Sizes,
    all_of,
    equal_first_sizes,
    equal_shapes,
    same_batches,
    same_shapes,
    shape_in_value,
)


def equal_products(op_type: str, op: Op) -> Iterator[EqualProducts]:
    """Yield the equal products of sizes of one op.

    For a malformed op, yield only the products before the first one that needs a missing input.
    """
    rule = RULES.get(op_type)
    if rule is not None:
        with suppress(IndexError):
            yield from rule(op)


def _all_equal(op: Op) -> Iterator[EqualProducts]:
    for shape in op.inputs:
        yield from equal_shapes(shape, op.output())


def _broadcast(op: Op) -> Iterator[EqualProducts]:
    yield from _broadcast_shapes(op.inputs, op.output())


def _broadcast_shapes(shapes: Sequence[Sizes | None], output: Sizes | None) -> Iterator[EqualProducts]:
    """Yield the constraints of broadcasting."""
    if output is None or None in shapes:
        return
    for axis in range(1, len(output) + 1):
        sizes = [shape[-axis] for shape in shapes if shape is not None and len(shape) >= axis]
        has_larger = any(size > 1 for size in sizes)
        for size in sizes:
            if size > 1 or (size < 0 and not has_larger):
                yield (size,), (output[-axis],)


def _matmul(op: Op) -> Iterator[EqualProducts]:
    yield from _product(op, op.boolean("transpose_a"), op.boolean("transpose_b"))


def _batch_matmul(op: Op) -> Iterator[EqualProducts]:
    left, right, output = op.input(0), op.input(1), op.output()
    yield from _product(op, op.boolean("adj_x"), op.boolean("adj_y"))
    if left is not None and right is not None and output is not None:
        yield from _broadcast_shapes([left[:-2], right[:-2]], output[:-2])


def _product(op: Op, left_is_transposed: bool, right_is_transposed: bool) -> Iterator[EqualProducts]:
    left, right, output = op.input(0), op.input(1), op.output()
    if left is not None and right is not None and min(len(left), len(right)) > 1:
        rows, inner = (left[-1], left[-2]) if left_is_transposed else (left[-2], left[-1])
        other_inner, columns = (right[-1], right[-2]) if right_is_transposed else (right[-2], right[-1])
        yield (inner,), (other_inner,)
        if output is not None and len(output) > 1:
            yield (rows,), (output[-2],)
            yield (columns,), (output[-1],)


def _reshape(op: Op) -> Iterator[EqualProducts]:
    """Yield the constraint that a reshape keeps the number of elements.

    The output also has the shape in the value of input 1. If the products of the known sizes are
    equal, the open sizes are assumed to be equal, too, in order.
    """
    input_sizes, output_sizes = op.input(0), op.output()
    yield from equal_shapes(op.value(1), output_sizes)
    if input_sizes is None or output_sizes is None:
        return
    open_input_sizes, open_output_sizes = (
        [size for size in shape if size < 0] for shape in (input_sizes, output_sizes)
    )
    known_products = [math.prod(size for size in shape if size >= 0) for shape in (input_sizes, output_sizes)]
    if len(open_input_sizes) == len(open_output_sizes) and known_products[0] == known_products[1]:
        yield from (((size,), (new_size,)) for size, new_size in zip(open_input_sizes, open_output_sizes, strict=True))
    else:
        yield input_sizes, output_sizes


def _squeeze(op: Op) -> Iterator[EqualProducts]:
    shapes = [
        None if shape is None else tuple(size for size in shape if size != 1) for shape in (op.input(0), op.output())
    ]
    yield from equal_shapes(*shapes)


def _transpose(op: Op) -> Iterator[EqualProducts]:
    input_sizes, output_sizes, order = op.input(0), op.output(), op.constant(1)
    if input_sizes is None or output_sizes is None:
        return
    if order is not None and sorted(order) == list(range(len(input_sizes))):
        yield from equal_shapes(tuple(input_sizes[axis] for axis in order), output_sizes)
    else:
        yield input_sizes, output_sizes


def _reduce(op: Op) -> Iterator[EqualProducts]:
    input_sizes, output_sizes, axes = op.input(0), op.output(), op.constant(1)
    if input_sizes is None or output_sizes is None:
        return
    if axes is not None:
        reduced_axes = {axis % len(input_sizes) for axis in axes} if input_sizes else set()
        remaining_sizes = [size for axis, size in enumerate(input_sizes) if axis not in reduced_axes]
        if len(output_sizes) == len(input_sizes):
            output_sizes = tuple(size for axis, size in enumerate(output_sizes) if axis not in reduced_axes)
        yield from equal_shapes(tuple(remaining_sizes), output_sizes)
    else:
        open_input_sizes, open_output_sizes = (
            [size for size in shape if size < 0] for shape in (input_sizes, output_sizes)
        )
        if len(open_input_sizes) == len(open_output_sizes) == 1:
            yield tuple(open_input_sizes), tuple(open_output_sizes)


def _equal_except_along(op: Op, axis: int | None, shapes: Sequence[Sizes | None]) -> Iterator[EqualProducts]:
    """Yield the constraints that ``shapes`` equal that of the output, except along ``axis``."""
    output = op.output()
    if axis is None or not output:
        return
    axis %= len(output)
    for shape in shapes:
        if shape is not None and len(shape) == len(output):
            yield from equal_shapes(shape[:axis] + shape[axis + 1 :], output[:axis] + output[axis + 1 :])


def _concat(op: Op) -> Iterator[EqualProducts]:
    yield from _equal_except_along(op, op.number(len(op.inputs) - 1), op.inputs[:-1])


def _split(op: Op) -> Iterator[EqualProducts]:
    yield from _equal_except_along(op, op.number(0), [op.input(1)])
    yield from (pair for other in op.outputs[1:] for pair in equal_shapes(op.output(), other))


def _pack(op: Op) -> Iterator[EqualProducts]:
    output = op.output()
    if output:
        axis = op.integer("axis") % len(output)
        for shape in op.inputs:
            yield from equal_shapes(shape, output[:axis] + output[axis + 1 :])


def _unpack(op: Op) -> Iterator[EqualProducts]:
    packed = op.input(0)
    if packed:
        axis = op.integer("axis") % len(packed)
        for shape in op.outputs:
            yield from equal_shapes(packed[:axis] + packed[axis + 1 :], shape)


def _gather(op: Op) -> Iterator[EqualProducts]:
    table, indices, output = op.input(0), op.input(1), op.output()
    is_first_axis = len(op.inputs) < 3 or op.constant(2) == (0,)  # the third input is the axis
    if indices is not None and output is not None and is_first_axis and not op.integer("batch_dims"):
        yield from equal_shapes(indices, output[: len(indices)])
        if table:
            yield from equal_shapes(table[1:], output[len(indices) :])


def _resource_gather(op: Op) -> Iterator[EqualProducts]:
    indices, output = op.input(1), op.output()
    if indices is not None and output is not None:
        yield from equal_shapes(indices, output[: len(indices)])


def _pad(op: Op) -> Iterator[EqualProducts]:
    input_sizes, output_sizes, widths = op.input(0), op.output(), op.constant(1)
    if (
        input_sizes is not None
        and output_sizes is not None
        and widths is not None
        and len(widths) == 2 * len(input_sizes) == 2 * len(output_sizes)
    ):
        unpadded_axes = [axis for axis in range(len(input_sizes)) if not widths[2 * axis] and not widths[2 * axis + 1]]
        yield from equal_shapes(
            tuple(input_sizes[axis] for axis in unpadded_axes), tuple(output_sizes[axis] for axis in unpadded_axes)
        )


def _tile(op: Op) -> Iterator[EqualProducts]:
    input_sizes, output_sizes, times = op.input(0), op.output(), op.value(1)
    if (
        input_sizes is not None
        and output_sizes is not None
        and times is not None
        and len(input_sizes) == len(output_sizes) == len(times)
    ):
        pairs = zip(input_sizes, times, output_sizes, strict=True)
        yield from (((size, repeats), (new_size,)) for size, repeats, new_size in pairs if repeats != -1)


def _loop(op: Op) -> Iterator[EqualProducts]:
    """Yield the constraints that loop variables keep their shapes."""
    for input_sizes, output_sizes in zip(op.inputs, op.outputs, strict=False):
        yield from equal_shapes(input_sizes, output_sizes)


def _slice(op: Op) -> Iterator[EqualProducts]:
    """Yield the constraint that a slice over the whole first axis keeps the size of that axis."""
    keeps_first_axis = op.integer("begin_mask") & op.integer("end_mask") & 1
    changes_axes = op.integer("ellipsis_mask") | op.integer("new_axis_mask") | op.integer("shrink_axis_mask")
    if keeps_first_axis and not changes_axes & 1 and (op.constant(3) or (1,))[0] == 1:
        yield from equal_first_sizes(op.input(0), op.output())


def _einsum(op: Op) -> Iterator[EqualProducts]:
    equation = op.attrs["equation"].s.decode("utf-8", "replace").replace(" ", "") if "equation" in op.attrs else ""
    left, _, right = equation.partition("->")
    terms, shapes = [*left.split(","), right], [*op.inputs, op.output()]
    if "." in equation or len(terms) != len(shapes):
        return
    sizes_by_label: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if shape is not None and len(term) == len(shape):
            yield from (
                ((size,), (sizes_by_label.setdefault(label, size),)) for label, size in zip(term, shape, strict=True)
            )


_SAME_SHAPES: Final = same_shapes((0, -1))
_GRADIENT_SHAPES: Final = same_shapes((0, -1), (1, -1))

_SAME_SHAPE_OPS: Final = (
    *("Identity", "Cast", "StopGradient", "PreventGradient", "CheckNumerics", "ZerosLike", "OnesLike", "Snapshot"),
    *(
        "Softmax",
        "LogSoftmax",
        "BiasAdd",
        "BiasAddV1",
        "Cumsum",
        "Cumprod",
        "LRN",
        "FusedBatchNorm",
        "FusedBatchNormV2",
    ),
    *("FusedBatchNormV3", "LogicalNot", "ClipByValue", "EnsureShape", "Bitcast", "Bucketize", "ReverseV2"),
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Erfc", "Exp"),
    *("Expm1", "Floor", "Inv", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Log", "Log1p", "Neg", "Reciprocal", "Relu"),
    *("Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt"),
    *("Square", "Tan", "Tanh"),
)
_GRADIENT_OPS: Final = (
    *("EluGrad", "InvGrad", "LeakyReluGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad"),
    *("SigmoidGrad", "SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad"),
    *("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
)
_BROADCAST_OPS: Final = (
    *("Add", "AddV2", "Sub", "Mul", "MulNoNan", "Div", "DivNoNan", "RealDiv", "FloorDiv", "FloorMod", "Mod", "Pow"),
    *("Maximum", "Minimum", "SquaredDifference", "Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual"),
    *("LogicalAnd", "LogicalOr", "SelectV2", "Xdivy", "Xlogy", "TruncateDiv", "TruncateMod", "Atan2"),
)
_REDUCTIONS: Final = ("Mean", "Sum", "Max", "Min", "Prod", "Any", "All", "ArgMax", "ArgMin")

RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_SAME_SHAPE_OPS, _SAME_SHAPES),
    **dict.fromkeys(_GRADIENT_OPS, _GRADIENT_SHAPES),
    **dict.fromkeys(_BROADCAST_OPS, _broadcast),
    **dict.fromkeys(("AddN", "AccumulateNV2"), _all_equal),
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative", "Dilation2D"), same_batches((0, -1))),
    **dict.fromkeys(("AvgPool", "MaxPool", "AvgPool3D", "MaxPool3D"), same_batches((0, -1))),
    **dict.fromkeys(("ResizeBilinear", "ResizeNearestNeighbor"), same_batches((0, -1))),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), all_of(shape_in_value(0), same_batches((2, -1)))),
    "DepthwiseConv2dNativeBackpropInput": all_of(shape_in_value(0), same_batches((2, -1))),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), same_batches((0, 2))),
    "DepthwiseConv2dNativeBackpropFilter": same_batches((0, 2)),
    **dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), all_of(same_shapes((0, -1), (1, 2)), same_batches((0, 1)))),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), all_of(shape_in_value(0), same_batches((1, -1)))),
    **dict.fromkeys(("Fill", "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "Empty"), shape_in_value(0)),
    **dict.fromkeys(
        ("StatelessRandomUniform", "StatelessRandomUniformV2", "StatelessRandomNormalV2"), shape_in_value(0)
    ),
    "BroadcastTo": shape_in_value(1),
    "Tile": _tile,
    **dict.fromkeys(("While", "StatelessWhile"), _loop),
    "MatMul": _matmul,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _batch_matmul),
    "Einsum": _einsum,
    "Reshape": _reshape,
    **dict.fromkeys(("Squeeze", "ExpandDims"), _squeeze),
    "Transpose": _transpose,
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "SparseSoftmaxCrossEntropyWithLogits": all_of(same_shapes((0, -2), (1, -1)), same_batches((0, -1))),
    "SoftmaxCrossEntropyWithLogits": all_of(same_shapes((0, -2), (0, 1)), same_batches((0, -1))),
    "ConcatV2": _concat,
    "Split": _split,
    "Pack": _pack,
    "Unpack": _unpack,
    **dict.fromkeys(("Gather", "GatherV2"), _gather),
    "ResourceGather": _resource_gather,
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _pad),
    "StridedSlice": _slice,
}
