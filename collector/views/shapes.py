"""Shapes of outputs: what a graph says of its nodes, and what traces recorded."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError
from tfprof.collector.errors import FormatError
from tfprof.collector.ingest.proto import graph_pb2
from tfprof.collector.store import outputs as signatures
from tfprof.collector.views.attributes import OUTPUT_SHAPES
from tfprof.collector.views.flops import Dims
from tfprof.collector.views.nodes import Shape

#: Outputs of one node by slot; None for one of which not even the rank is known.
Outputs = tuple[Dims | None, ...]

#: A fed placeholder runs under a name of its own: its node, output and position among what is fed.
_ARGUMENT: Final = re.compile(r"_arg_(.+)_(\d+)_\d+", re.DOTALL)
#: What a timeline label says after the memory that was in use: which op ran, on which inputs.
_LABEL: Final = re.compile(r"(?:\[[^\]]*\] )?(?P<name>\S+) = (?P<op>\w+)\((?P<inputs>[^()]*)\)")
#: A body that was put in the place of a call, loop or branch: its nodes keep their names behind the call's.
_BODY: Final = re.compile(r".*/_\d+/(.+)")


class Source(NamedTuple):
    """An input: which output of which node; a control input has none, and is its first all the same."""

    name: str
    slot: int
    control: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """What a graph says of one node; ``attrs`` are AttrValues by name."""

    graph: int
    name: str
    op: str
    attrs: Mapping[str, Any]
    inputs: tuple[Source, ...] = ()
    outputs: Outputs = ()


def complete(dims: Dims | None) -> bool:
    """Whether all sizes are known."""
    return dims is not None and min(dims, default=0) >= 0


def dims_of(proto: Any) -> Dims | None:
    """Return the sizes in a TensorShapeProto."""
    return None if proto.unknown_rank else tuple(dim.size for dim in proto.dim)


def shown(dims: Dims | None) -> Shape:
    """Return a shape as tfprof's views have it: a scalar is (1,), an unknown rank ()."""
    return () if dims is None else dims or (1,)


def source(text: str) -> Source:
    """Read an input of a NodeDef."""
    name, _, slot = text.partition(":")
    return Source(name.removeprefix("^"), int(slot) if slot.isdecimal() else 0, text.startswith("^"))


def definitions(rows: Iterable[tuple[int, str, str, bytes]]) -> list[Definition]:
    """Read graph nodes: (graph, name, op, serialised NodeDef); one that does not parse has no attributes."""
    return [_definition(*row) for row in rows]


def _definition(graph: int, name: str, op: str, node_def: bytes) -> Definition:
    try:
        node = graph_pb2.NodeDef.FromString(node_def)
    except DecodeError:
        return Definition(graph, name, op, {})
    shapes = node.attr[OUTPUT_SHAPES].list.shape if OUTPUT_SHAPES in node.attr else ()
    return Definition(graph, name, op, node.attr, tuple(map(source, node.input)), tuple(map(dims_of, shapes)))


# -- what traces recorded --------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def recorded(signature: bytes) -> Outputs:
    """Return the shapes in an output signature by slot, None where it has none."""
    shapes: dict[int, Dims | None] = {}
    for output in _outputs(signature):
        if 0 <= output.slot <= len(shapes):
            shapes[output.slot] = _dims(output.shape)
    return tuple(shapes[slot] for slot in range(len(shapes)))


def in_order(signature: bytes) -> list[Dims]:
    """Return the shapes in an output signature as TensorFlow's Python reads them: by position, without one a scalar."""
    return [_dims(output.shape) or () for output in _outputs(signature)]


def _outputs(signature: bytes) -> list[signatures.Output]:
    try:
        return signatures.decode(signature)
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


def inlined(name: str) -> str:
    """Return the name that a node of a function's body had before it was put in the place of a call."""
    match = _BODY.fullmatch(name)
    return match[1] if match else name


class Said(NamedTuple):
    """What a timeline label says: the op that ran, on which inputs; None where it says nothing of them."""

    op: str
    inputs: tuple[Source, ...] | None


def ran(label: str) -> Said | None:
    """Read the label of an execution: TensorFlow's executor writes `name = Op(inputs)`, a profiler window has the op alone."""
    match = _LABEL.fullmatch(label)
    if match:
        inputs = match["inputs"]
        return Said(match["op"], tuple(source(text) for text in inputs.split(", ")) if inputs else ())
    return Said(label, None) if label.isidentifier() else None


# -- as TensorFlow's Python fills shapes in ---------------------------------------------------------


def merged(known: Dims | None, other: Dims) -> Dims:
    """Return what both shapes say; ValueError when they contradict each other."""
    if known is None:
        return other
    if len(known) != len(other):
        raise ValueError
    return tuple(_merged(*pair) for pair in zip(known, other, strict=True))


def _merged(one: int, other: int) -> int:
    if -1 not in (one, other) and one != other:
        raise ValueError
    return max(one, other)


class Filled(NamedTuple):
    """Outputs by node, and how many recorded shapes contradicted the graph's."""

    outputs: dict[str, Outputs]
    contradictions: int


def filled(graph: Mapping[str, Definition], first: Iterable[tuple[str, bytes]]) -> Filled:
    """Return the outputs of a graph's nodes, those that are not fully known merged with recorded ones.

    ``first``: output signatures by node, in the order of their first appearance. Nothing is told on to consumers, so that
    the first trace decides, for good.
    """
    outputs = {name: definition.outputs for name, definition in graph.items()}
    contradictions = 0
    for name, signature in first:
        known, shapes = outputs.get(name, ()), in_order(signature)
        if not shapes or len(shapes) != len(known):
            continue
        after = list(known)
        for slot, dims in enumerate(shapes):
            if not complete(known[slot]):
                try:
                    after[slot] = merged(known[slot], dims)
                except ValueError:
                    contradictions += 1
        outputs[name] = tuple(after)
    return Filled(outputs, contradictions)


def agreed(shapes: Sequence[Dims]) -> Dims | None:
    """Return what shapes have in common: -1 where sizes differ, None where ranks do."""
    if not shapes or len({len(dims) for dims in shapes}) > 1:
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))
