"""The parts of op types: their nodes by scope, layer, line, device or shapes of inputs."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..tfviews.added import ADDED, is_added
from ..tfviews.inlined import original_name
from ..tfviews.nodes import Node
from ..tfviews.op import OpTypeEntry, in_order, op_types
from ..tfviews.options import LINE, SHAPE, Options
from ..tfviews.own_files import forward_of
from ..tfviews.parity import Parity
from ..tfviews.rows import Parts, line_lookup
from ..tfviews.shape_text import shape_text
from .top import short_device

#: Returns the part that a node belongs to.
_PartOf = Callable[[Node], str]
#: The scopes of gradients, in front of the name of the forward op.
_GRADIENT_SCOPE: Final = re.compile(r"(?:.*/)?gradient(?:s|_tape)(?:_\d+)?/")
#: The number of a second op of a name.
_NUMBER: Final = re.compile(r"_\d+$")


def _scopes(_nodes: Sequence[Node]) -> _PartOf:
    def scope(node: Node) -> str:
        return ADDED if is_added(node) else node.name.rpartition("/")[0] or "(no scope)"

    return scope


def _layers(nodes: Sequence[Node]) -> _PartOf:
    """Return the function that names the layer of a node.

    That is the scope of its forward op, without the scopes that single ops have.
    """
    names, types = {node.name for node in nodes}, {node.op for node in nodes}

    def layer(node: Node) -> str:
        if is_added(node):
            return ADDED
        forward = forward_of(node) or _GRADIENT_SCOPE.sub("", original_name(node.name), count=1)
        scope = forward.rpartition("/")[0]
        while scope and (scope in names or _NUMBER.sub("", scope.rpartition("/")[2]) in types):
            scope = scope.rpartition("/")[0]
        return scope or "(no layer)"

    return layer


def _lines(nodes: Sequence[Node]) -> _PartOf:
    line_of = line_lookup(nodes)
    return lambda node: line_of(node) or "(no line of Python)"


def _devices(_nodes: Sequence[Node]) -> _PartOf:
    return lambda node: ",".join(map(short_device, node.devices)) or "(no device)"


def _shapes(_nodes: Sequence[Node]) -> _PartOf:
    return lambda node: ", ".join(map(shape_text, node.facts.input_shapes)) or "(no inputs)"


_PARTS_OF: Final[Mapping[str, Callable[[Sequence[Node]], _PartOf]]] = {
    "scope": _scopes,
    "layer": _layers,
    LINE: _lines,
    "device": _devices,
    SHAPE: _shapes,
}


def by_part(nodes: Sequence[Node], by: str) -> dict[str, list[Node]]:
    """Return ``nodes`` by part; ``by``: a word of BY in `options`, other than STEP."""
    part_of = _PARTS_OF[by](nodes)
    nodes_by_part: dict[str, list[Node]] = {}
    for node in nodes:
        nodes_by_part.setdefault(part_of(node), []).append(node)
    return nodes_by_part


def op_parts(
    nodes_by_part: Mapping[str, Sequence[Node]], options: Options, parity: Parity, *, add_up: bool = True
) -> Parts:
    """Return the parts of each op type, in the order of the view.

    The nodes of a part are in name order; ``add_up``: see Parts.
    """
    parts: dict[str, list[OpTypeEntry]] = {}
    for part, nodes in nodes_by_part.items():
        for entry in op_types(nodes, options):
            if entry.nodes:
                parts.setdefault(entry.name, []).append(replace(entry, name=part))
    return Parts({op: in_order(entries, options.order_by, parity) for op, entries in parts.items()}, add_up)
