"""Facts that traces record about executions: output shapes, ops in timeline labels, original node names."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from ..decoders.proto import graph_pb2
from ..errors import FormatError
from ..store.outputs import OpOutput, decode
from .definitions import InputSource, Outputs, dims_of, source
from .registry import Dims

#: Name under which a fed placeholder runs: its node, output, and position among the feeds.
_ARGUMENT: Final = re.compile(r"_arg_(.+)_(\d+)_\d+", re.DOTALL)
#: A timeline label: memory in use (optional), then the op and its inputs.
_LABEL: Final = re.compile(r"(?:\[[^\]]*\] )?(?P<name>\S+) = (?P<op>\w+)\((?P<inputs>[^()]*)\)")

#: Name of an optimizer's replacement for a node:
#: `scope/ArithmeticOptimizer/FoldTransposeIntoMatMul_MatMul_8`.
_OPTIMIZED: Final = re.compile(r"(?P<scope>(?:.*/)?)\w+Optimizer/(?P<rest>[^/]+)")


class Sample(NamedTuple):
    """One execution of a node: timeline label and output signature, empty if absent."""

    label: str
    signature: bytes


class ExecutionRow(NamedTuple):
    """Executions of one node in one trace with equal outputs."""

    node: str
    signature: bytes
    output_bytes: int
    runs: int


class EquivalentSteps(NamedTuple):
    """Traces in which all nodes with open shapes ran equally often and with the same outputs (``rows``).

    ``orders``: for nodes in loops, the output signatures of all executions in order of their start.
    """

    traces: int
    rows: Sequence[ExecutionRow]
    orders: Mapping[str, Sequence[bytes]] = MappingProxyType({})


@lru_cache(maxsize=1 << 16)
def recorded(signature: bytes) -> Outputs:
    """Return the shapes in an output signature by slot, None for an output without one."""
    shapes: dict[int, Dims | None] = {}
    for output in _outputs(signature):
        if 0 <= output.slot <= len(shapes):
            shapes[output.slot] = _dims(output.shape)
    return tuple(shapes[slot] for slot in range(len(shapes)))


@lru_cache(maxsize=1 << 16)
def by_slot(signature: bytes) -> Mapping[int, Dims | None]:
    """Return the shapes in an output signature by slot: a switch has only one of its two outputs."""
    return {output.slot: _dims(output.shape) for output in _outputs(signature)}


def in_order(signature: bytes) -> list[Dims]:
    """Return the shapes in an output signature by position, as TensorFlow's Python does; a missing one is a scalar."""
    return [_dims(output.shape) or () for output in _outputs(signature)]


def _outputs(signature: bytes) -> list[OpOutput]:
    try:
        return decode(signature)
    except FormatError:
        return []


@lru_cache(maxsize=1 << 16)
def _dims(shape: bytes | None) -> Dims | None:
    if shape is None:
        return None
    try:
        return dims_of(graph_pb2.TensorShapeProto.FromString(shape))
    except DecodeError:
        return None


@lru_cache(maxsize=1 << 16)
def fed(name: str) -> InputSource | None:
    """Return the placeholder output that the feed node ``name`` replaces; None if it is no feed node."""
    match = _ARGUMENT.fullmatch(name)
    return InputSource(match[1], int(match[2])) if match else None


def originals(name: str) -> list[str]:
    """Return the possible names of the node that TensorFlow's graph optimizer replaced by ``name``."""
    match = _OPTIMIZED.fullmatch(name) if "Optimizer/" in name else None
    if match is None:
        return []
    parts = match["rest"].split("_")
    return [match["scope"] + "_".join(parts[first:]) for first in range(1, len(parts))]


class LabelInfo(NamedTuple):
    """Content of a timeline label: the op and its inputs, None if the label names none."""

    op: str
    inputs: tuple[InputSource, ...] | None


def ran(label: str) -> LabelInfo | None:
    """Parse a timeline label: `name = Op(inputs)` from TensorFlow's executor, the op alone from a profiler window."""
    match = _LABEL.fullmatch(label)
    if match:
        inputs = match["inputs"]
        return LabelInfo(match["op"], tuple(source(text) for text in inputs.split(", ")) if inputs else ())
    return LabelInfo(label, None) if label.isidentifier() else None
