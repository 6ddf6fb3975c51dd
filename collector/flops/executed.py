"""What traces say of executions: the shapes in output signatures, the ops in labels, the nodes behind names."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from ..decoders.proto import graph_pb2
from ..errors import FormatError
from ..store.outputs import Output, decode
from .definitions import Outputs, Source, dims_of, source
from .registry import Dims

#: A fed placeholder runs under a name of its own: its node, output and position among what is fed.
_ARGUMENT: Final = re.compile(r"_arg_(.+)_(\d+)_\d+", re.DOTALL)
#: What a timeline label says after the memory that was in use: which op ran, on which inputs.
_LABEL: Final = re.compile(r"(?:\[[^\]]*\] )?(?P<name>\S+) = (?P<op>\w+)\((?P<inputs>[^()]*)\)")

#: What an optimizer puts in the place of a node: `scope/ArithmeticOptimizer/FoldTransposeIntoMatMul_MatMul_8`.
_OPTIMIZED: Final = re.compile(r"(?P<scope>(?:.*/)?)\w+Optimizer/(?P<rest>[^/]+)")


class Sample(NamedTuple):
    """One execution of a node: its timeline label, its output signature, empty without."""

    label: str
    signature: bytes


class Row(NamedTuple):
    """Executions of one node in one trace that are alike."""

    node: str
    signature: bytes
    output_bytes: int
    runs: int


class EquivalentSteps(NamedTuple):
    """Traces in which the nodes that graphs leave open ran equally often, with the same outputs: ``rows``.

    ``orders``: the output signatures of all executions of a node as they began, of nodes in loops with several.
    """

    traces: int
    rows: Sequence[Row]
    orders: Mapping[str, Sequence[bytes]] = MappingProxyType({})


@lru_cache(maxsize=1 << 16)
def recorded(signature: bytes) -> Outputs:
    """Return the shapes in an output signature by slot, None where it has none."""
    shapes: dict[int, Dims | None] = {}
    for output in _outputs(signature):
        if 0 <= output.slot <= len(shapes):
            shapes[output.slot] = _dims(output.shape)
    return tuple(shapes[slot] for slot in range(len(shapes)))


@lru_cache(maxsize=1 << 16)
def by_slot(signature: bytes) -> Mapping[int, Dims | None]:
    """Return the shapes in an output signature: a switch puts out one of its two outputs."""
    return {output.slot: _dims(output.shape) for output in _outputs(signature)}


def in_order(signature: bytes) -> list[Dims]:
    """Return the shapes in an output signature as TensorFlow's Python reads them: by position, without one a scalar."""
    return [_dims(output.shape) or () for output in _outputs(signature)]


def _outputs(signature: bytes) -> list[Output]:
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
def fed(name: str) -> Source | None:
    """Return the placeholder's output that a node called ``name`` is fed in place of; None when it is none such."""
    match = _ARGUMENT.fullmatch(name)
    return Source(match[1], int(match[2])) if match else None


def originals(name: str) -> list[str]:
    """Return what may have been the name of the node that TensorFlow's graph optimizer made ``name`` of."""
    match = _OPTIMIZED.fullmatch(name) if "Optimizer/" in name else None
    if match is None:
        return []
    parts = match["rest"].split("_")
    return [match["scope"] + "_".join(parts[first:]) for first in range(1, len(parts))]


class LabelInfo(NamedTuple):
    """Content of a timeline label: the op that ran and its inputs, None if the label has none."""

    op: str
    inputs: tuple[Source, ...] | None


def ran(label: str) -> LabelInfo | None:
    """Read the label of an execution: TensorFlow's executor writes `name = Op(inputs)`, a profiler window has the op alone."""
    match = _LABEL.fullmatch(label)
    if match:
        inputs = match["inputs"]
        return LabelInfo(match["op"], tuple(source(text) for text in inputs.split(", ")) if inputs else ())
    return LabelInfo(label, None) if label.isidentifier() else None
