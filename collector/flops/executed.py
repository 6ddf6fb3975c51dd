"""Reads recorded facts about executions: output shapes, labels, original names of nodes."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from ..decoders.proto import graph_pb2
from ..errors import FormatError
from ..store.output_signatures import OpOutput, decode
from .definitions import InputSource, Outputs, dims_of, parse_input
from .kernels import split_label
from .registry import Dims

#: Name of the execution of a fed placeholder: node, output, and position among the feeds.
_ARGUMENT: Final = re.compile(r"_arg_(.+)_(\d+)_\d+", re.DOTALL)
#: The inputs in a timeline label, and the end of the label.
_INPUTS: Final = re.compile(r"([^()]*)\)")
#: Name of an optimizer's replacement for a node:
#: `scope/ArithmeticOptimizer/FoldTransposeIntoMatMul_MatMul_8`.
_OPTIMIZED: Final = re.compile(r"(?P<scope>(?:.*/)?)\w+Optimizer/(?P<name>[^/]+)")


class SampleExecution(NamedTuple):
    """One execution of a node: its timeline label and output signature, each empty if absent."""

    label: str
    signature: bytes


class ExecutionRow(NamedTuple):
    """The executions of one node in one trace that have equal outputs; ``runs``: their number."""

    node: str
    signature: bytes
    output_bytes: int
    runs: int


class EquivalentSteps(NamedTuple):
    """Traces in which all nodes with open shapes ran equally often with the same outputs.

    A shape is open if the graph does not specify it. ``trace_count``: number of traces; ``rows``:
    the executions in each of them; ``loop_signatures``: for nodes in loops, the output signatures
    of all executions, in order of their start.
    """

    trace_count: int
    rows: Sequence[ExecutionRow]
    loop_signatures: Mapping[str, Sequence[bytes]] = MappingProxyType({})


@lru_cache(maxsize=1 << 16)
def recorded_shapes(signature: bytes) -> Outputs:
    """Return the shapes in an output signature by slot, None for an output without a shape.

    Outputs after a missing slot are left out.
    """
    shapes: dict[int, Dims | None] = {}
    for output in _outputs(signature):
        if 0 <= output.slot <= len(shapes):
            shapes[output.slot] = _dims(output.shape)
    return tuple(shapes[slot] for slot in range(len(shapes)))


@lru_cache(maxsize=1 << 16)
def shapes_by_slot(signature: bytes) -> Mapping[int, Dims | None]:
    """Return the shapes in an output signature by slot; slots may be missing, as after a switch."""
    return {output.slot: _dims(output.shape) for output in _outputs(signature)}


def shapes_in_order(signature: bytes) -> list[Dims]:
    """Return the shapes in an output signature by position, as TensorFlow's Python layer does.

    A missing shape is ().
    """
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
def fed_placeholder(name: str) -> InputSource | None:
    """Return the output of the placeholder that the feed node ``name`` replaces.

    Return None if ``name`` is not the name of a feed node.
    """
    match = _ARGUMENT.fullmatch(name)
    return InputSource(match[1], int(match[2])) if match else None


def original_names(name: str) -> list[str]:
    """Return possible names of the node that TensorFlow's graph optimizer replaced by ``name``.

    The list is empty if ``name`` is not the name of such a replacement.
    """
    match = _OPTIMIZED.fullmatch(name) if "Optimizer/" in name else None
    if match is None:
        return []
    words = match["name"].split("_")
    return [match["scope"] + "_".join(words[first:]) for first in range(1, len(words))]


class LabelInfo(NamedTuple):
    """The op in a timeline label, and its inputs; None if the label does not list them."""

    op: str
    inputs: tuple[InputSource, ...] | None


def parsed_label(label: str) -> LabelInfo | None:
    """Parse a timeline label; return None if it contains no op.

    TensorFlow's executor writes `name = Op(inputs)`. A profiler session writes only the op.
    """
    parts = split_label(label)
    if parts is not None:
        inputs = _INPUTS.fullmatch(parts.inputs_text)
        return inputs and LabelInfo(parts.kernel, tuple(parse_input(text) for text in inputs[1].split(", ") if text))
    return LabelInfo(label, None) if label.isidentifier() else None
