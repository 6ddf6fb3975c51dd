"""Parses the nodes of graphs: ops, attributes, inputs, and the known shapes of outputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from ..decoders.proto import graph_pb2
from .attributes import OUTPUT_SHAPES
from .registry import Dims

#: Shapes of a node's outputs by slot; None for an unknown rank.
Outputs = tuple[Dims | None, ...]


class InputSource(NamedTuple):
    """An input of a node: source node and output slot; a control input has slot 0."""

    name: str
    slot: int
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """One node of a graph; ``attrs`` are AttrValues by name."""

    graph: int
    name: str
    op: str
    attrs: Mapping[str, Any]
    inputs: tuple[InputSource, ...] = ()
    outputs: Outputs = ()


def is_fully_known(dims: Dims | None) -> bool:
    """Return whether the rank and all sizes of a shape are known."""
    return dims is not None and min(dims, default=0) >= 0


def dims_of(proto: Any) -> Dims | None:
    """Return the sizes in a TensorShapeProto, None for an unknown rank."""
    return None if proto.unknown_rank else tuple(dim.size for dim in proto.dim)


def parse_input(text: str) -> InputSource:
    """Parse an input of a NodeDef."""
    name, _, slot = text.partition(":")
    return InputSource(name.removeprefix("^"), int(slot) if slot.isdecimal() else 0, text.startswith("^"))


def definitions(rows: Iterable[tuple[int, str, str, bytes]]) -> list[Definition]:
    """Parse graph nodes from (graph, name, op, serialized NodeDef).

    A node with a malformed NodeDef has no attributes, inputs and outputs.
    """
    return [_definition(*row) for row in rows]


def _definition(graph: int, name: str, op: str, node_def: bytes) -> Definition:
    try:
        node = graph_pb2.NodeDef.FromString(node_def)
    except DecodeError:
        return Definition(graph, name, op, {})
    shapes = node.attr[OUTPUT_SHAPES].list.shape if OUTPUT_SHAPES in node.attr else ()
    return Definition(graph, name, op, node.attr, tuple(map(parse_input, node.input)), tuple(map(dims_of, shapes)))
