"""Evaluates small integer tensors: constants, and shapes that graphs compute.

The shapes may have open sizes.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

from google.protobuf.message import DecodeError

from ..decoders.proto import graph_pb2
from .call_graph import NodeKey
from .constraints import Op, Sizes
from .definitions import Definition, InputSource

_INT32, _INT64 = 3, 9
_WIDTHS: Final = {_INT32: 4, _INT64: 8}
#: Maximum number of elements of a tensor; maximum depth of the ops that compute it.
_VALUES_MAX, _DEPTH_MAX = 64, 32


class KnownValues:
    """The values of a job's nodes, each computed once."""

    def __init__(self, nodes: Mapping[NodeKey, Definition], shape: Callable[[int, str, int], Sizes | None]) -> None:
        """Prepare the evaluation of ``nodes``.

        ``shape``: function that returns the sizes of an output, open ones as numbers below -1.
        """
        self._nodes = nodes
        self._shape = shape
        self._constants: dict[NodeKey, Sizes | None] = {}
        self._values: dict[tuple[int, InputSource], Sizes | None] = {}

    def constant(self, graph: int, source: InputSource) -> Sizes | None:
        """Return the elements of a small constant, None for any other node."""
        key = graph, source.name
        if key not in self._constants:
            self._constants[key] = _constant(self._nodes.get(key))
        return self._constants[key]

    def value(self, graph: int, source: InputSource, depth: int = 0) -> Sizes | None:
        """Return the elements of a tensor that contains a shape; None if they are unknown.

        A number below -1 stands for a size that the graph does not specify; equal numbers are equal
        sizes. -1 is a size of which nothing is known.
        """
        key = graph, source
        if key not in self._values:
            self._values[key] = None  # ends the recursion if the value depends on itself
            self._values[key] = self._evaluate(graph, source, depth)
        return self._values[key]

    def _evaluate(self, graph: int, output: InputSource, depth: int) -> Sizes | None:
        node = self._nodes.get((graph, output.name))
        if node is None or depth > _DEPTH_MAX:
            return None
        data_inputs = [source for source in node.inputs if not source.is_control]
        if node.op in _SHAPE_OPS:
            operand = data_inputs[output.slot] if output.slot < len(data_inputs) else None
            return None if operand is None else self._shape(graph, operand.name, operand.slot)
        if node.op == "Const":
            numbers = self.constant(graph, output)
            return None if numbers is None else tuple(number if number >= 0 else -1 for number in numbers)
        evaluate = _EVALUATORS.get(node.op)
        if evaluate is None:
            return None
        values = [self.value(graph, source, depth + 1) for source in data_inputs]
        constants = [self.constant(graph, source) for source in data_inputs]
        return evaluate(Op(node.attrs, (), (), constants, values))


def _first_input(op: Op) -> Sizes | None:
    return op.value(0)


def _pack(op: Op) -> Sizes | None:
    parts = [(-1,) if value is None else value for value in op.values]
    return tuple(size for part in parts for size in part) if all(len(part) == 1 for part in parts) else None


def _concat(op: Op) -> Sizes | None:
    parts = op.values[:-1]
    return None if None in parts else tuple(size for part in parts if part is not None for size in part)


def _strided_slice(op: Op) -> Sizes | None:
    sizes, (begin, end, stride) = op.value(0), map(op.number, (1, 2, 3))
    if sizes is None or begin is None or end is None or not stride:
        return None
    shrinks_axis, ignores_begin, ignores_end = (
        op.integer(f"{name}_mask") & 1 for name in ("shrink_axis", "begin", "end")
    )
    if shrinks_axis:
        return sizes[begin : begin + 1 or None]
    return sizes[None if ignores_begin else begin : None if ignores_end else end : stride]


def _gather(op: Op) -> Sizes | None:
    sizes, indices = op.value(0), op.constant(1)
    if sizes is None or indices is None or not all(-len(sizes) <= index < len(sizes) for index in indices):
        return None
    return tuple(sizes[index] for index in indices)


_SHAPE_OPS: Final = frozenset({"Shape", "ShapeN"})
_EVALUATORS: Final[Mapping[str, Callable[[Op], Sizes | None]]] = {
    **dict.fromkeys(("Identity", "Cast", "StopGradient", "EnsureShape", "ExpandDims", "Squeeze"), _first_input),
    "Pack": _pack,
    "ConcatV2": _concat,
    "StridedSlice": _strided_slice,
    **dict.fromkeys(("Gather", "GatherV2"), _gather),
}


def _constant(node: Definition | None) -> Sizes | None:
    """Return the elements of a small constant, None for any other node."""
    if node is None or node.op != "Const" or "value" not in node.attrs:
        return None
    try:
        tensor = graph_pb2.TensorProto.FromString(node.attrs["value"].tensor)
    except DecodeError:
        return None
    width = _WIDTHS.get(tensor.dtype)
    count = math.prod(dim.size for dim in tensor.tensor_shape.dim)
    if width is None or count > _VALUES_MAX:
        return None
    content = tensor.tensor_content
    numbers = tuple(tensor.int_val or tensor.int64_val)
    if content:
        numbers = tuple(
            int.from_bytes(content[at : at + width], "little", signed=True) for at in range(0, len(content), width)
        )
    if numbers and len(numbers) < count:  # the last element is repeated
        numbers += numbers[-1:] * (count - len(numbers))
    return numbers if len(numbers) == count else None
