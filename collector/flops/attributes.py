"""Reads facts about nodes from NodeDefs: parameter and output shapes, inputs, data formats."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import DecodeError

from ..decoders.proto import graph_pb2
from ..tfviews.nodes import NodeFacts, Shape

#: Attribute with the shape of a node's parameters, for nodes of any type.
SHAPE: Final = "shape"
OUTPUT_SHAPES: Final = "_output_shapes"
DATA_FORMAT: Final = "data_format"


@dataclass(frozen=True, slots=True)
class Attributes:
    """Facts from the NodeDef of one node.

    ``inputs``: names of the source nodes by position; ``slots``: the output slot of the source for
    each input.
    """

    parameter_shape: Shape = ()
    output_shapes: tuple[Shape, ...] = ()
    inputs: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    data_format: str = ""


def shape_of(proto: Any) -> Shape:
    """Return the shape in a TensorShapeProto, in the form of the TF profiler.

    A scalar is (1,), and an unknown rank is ().
    """
    if proto.unknown_rank:
        return ()
    return tuple(dim.size for dim in proto.dim) or (1,)


def attributes(node_def: bytes) -> Attributes:
    """Parse a serialized NodeDef; a malformed one has no attributes."""
    try:
        node = graph_pb2.NodeDef.FromString(node_def)
    except DecodeError:
        return Attributes()
    attr = node.attr
    parameter, outputs, data_format = (attr.get(key) for key in (SHAPE, OUTPUT_SHAPES, DATA_FORMAT))
    sources = [text.partition(":") for text in node.input]
    return Attributes(
        shape_of(parameter.shape) if parameter is not None and parameter.WhichOneof("value") == "shape" else (),
        tuple(map(shape_of, outputs.list.shape)) if outputs is not None else (),
        tuple(name.removeprefix("^") for name, _, _ in sources),
        tuple(int(slot) if slot.isdecimal() else 0 for _, _, slot in sources),
        data_format.s.decode("utf-8", "replace") if data_format is not None else "",
    )


def facts(definitions: Iterable[tuple[str, bytes]], *, by_slot: bool = False) -> dict[str, NodeFacts]:
    """Return the facts about each node by name.

    ``definitions``: pairs of name and serialized NodeDef. If several nodes have one name, the first
    is used. ``by_slot``: see `input_shapes`.
    """
    parsed_nodes: dict[str, tuple[bytes, Attributes]] = {}
    for name, node_def in definitions:
        if name not in parsed_nodes:
            parsed_nodes[name] = node_def, attributes(node_def)
    outputs = {name: node.output_shapes for name, (_, node) in parsed_nodes.items()}
    return {
        name: NodeFacts(
            node_def=node_def,
            parameter_shape=node.parameter_shape,
            inputs=node.inputs,
            input_shapes=input_shapes(node, outputs, by_slot=by_slot),
            output_shapes=node.output_shapes,
            data_format=node.data_format,
        )
        for name, (node_def, node) in parsed_nodes.items()
    }


def input_shapes(node: Attributes, outputs: Mapping[str, tuple[Shape, ...]], *, by_slot: bool) -> tuple[Shape, ...]:
    """Return the shape of each input, as the TF profiler determines it.

    It is the shape of the source's first output. With ``by_slot``, it is the shape of the output
    slot that the input names. If several inputs come from one source, all of them get the slot of
    the last one. An unknown shape is ().
    """
    slots = dict(zip(node.inputs, node.slots, strict=True)) if by_slot else {}
    shapes = []
    for source in node.inputs:
        source_shapes, slot = outputs.get(source, ()), slots.get(source, 0)
        shapes.append(source_shapes[slot] if slot < len(source_shapes) else ())
    return tuple(shapes)
