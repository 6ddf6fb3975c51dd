"""What a graph says of its nodes besides name and op: parameter shapes, output shapes, inputs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from google.protobuf.message import DecodeError
from tfprof.collector.ingest.proto import graph_pb2
from tfprof.collector.views.nodes import Node

Shape = tuple[int, ...]
#: Attribute that makes a node one with parameters, of whatever type it is.
SHAPE: Final = "shape"
OUTPUT_SHAPES: Final = "_output_shapes"


@dataclass(frozen=True, slots=True)
class Attributes:
    """One node's shapes and inputs; -1 is an unknown dimension, the empty shape an unknown rank."""

    parameter_shape: Shape = ()
    output_shapes: tuple[Shape, ...] = ()
    inputs: tuple[str, ...] = ()


def _shape(proto: Any) -> Shape:
    if proto.unknown_rank:
        return ()
    return tuple(dim.size for dim in proto.dim) or (1,)


def attributes(node_def: bytes) -> Attributes:
    """Read a serialised NodeDef; one that does not parse has no attributes."""
    try:
        node = graph_pb2.NodeDef.FromString(node_def)
    except DecodeError:
        return Attributes()
    parameter, outputs = node.attr.get(SHAPE), node.attr.get(OUTPUT_SHAPES)
    return Attributes(
        _shape(parameter.shape) if parameter is not None and parameter.WhichOneof("value") == "shape" else (),
        tuple(map(_shape, outputs.list.shape)) if outputs is not None else (),
        tuple(name.split(":", 1)[0].removeprefix("^") for name in node.input),
    )


def parameters(shape: Shape) -> int:
    """Return the number of elements; 0 where the shape is not fully known."""
    return 0 if not shape or min(shape) < 0 else math.prod(shape)


@dataclass(frozen=True, slots=True)
class Shapes:
    """The attributes of all nodes of a job by name."""

    by_name: Mapping[str, Attributes]

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> "Shapes":
        """Read the NodeDefs of ``nodes``."""
        return cls({node.name: attributes(node.node_def) for node in nodes})

    def counted(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes with their numbers of parameters."""
        return [
            replace(node, stats=node.stats._replace(params=parameters(self.by_name[node.name].parameter_shape)))
            for node in nodes
        ]

    def inputs(self, node: Node) -> list[Shape]:
        """Return the shape of each input in order: of the source's first output, as tfprof takes it."""
        nothing = Attributes()
        sources = (self.by_name.get(name, nothing) for name in self.by_name[node.name].inputs)
        return [source.output_shapes[0] if source.output_shapes else () for source in sources]
