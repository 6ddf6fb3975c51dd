"""The parts of op types: their nodes by scope, layer, line, device or shapes of inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..tfviews.nodes import Node, shape_text
from ..tfviews.op import OpTypeEntry, in_order, op_types
from ..tfviews.options import LINE, SHAPE, Options
from ..tfviews.parity import Parity
from ..tfviews.places import ADDED, Places, is_added, layer_lookup
from ..tfviews.rows import Parts
from .top import short_device

#: Returns the part that a node belongs to.
_PartOf = Callable[[Node], str]


def _scopes(_nodes: Sequence[Node]) -> _PartOf:
    def scope(node: Node) -> str:
        return ADDED if is_added(node) else node.name.rpartition("/")[0] or "(no scope)"

    return scope


def _layers(nodes: Sequence[Node]) -> _PartOf:
    layer_of = layer_lookup(nodes)
    return lambda node: layer_of(node) or (ADDED if is_added(node) else "(no layer)")


def _lines(nodes: Sequence[Node]) -> _PartOf:
    places = Places(nodes)
    return lambda node: places.line(node) or "(no line of Python)"


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

    The nodes of a part are in name order. `Parts` describes ``add_up``.
    """
    parts: dict[str, list[OpTypeEntry]] = {}
    for part, nodes in nodes_by_part.items():
        for entry in op_types(nodes, options):
            if entry.nodes:
                parts.setdefault(entry.name, []).append(replace(entry, name=part))
    return Parts({op: in_order(entries, options.order_by, parity) for op, entries in parts.items()}, add_up)
