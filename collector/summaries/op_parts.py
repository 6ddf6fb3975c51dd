"""Divides ops by where they come from: into parts of op types, and into the user's source lines."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ..tfviews.nodes import Node, shape_text
from ..tfviews.op import OpTypeEntry, in_order, op_types
from ..tfviews.options import LINE, SHAPE, Options
from ..tfviews.parity import Parity
from ..tfviews.places import ADDED, Places, is_added, layer_lookup, own_frame, short_layer_lookup, stack_lookup
from ..tfviews.rows import Parts
from .top import short_device

#: Returns the part that a node belongs to.
_PartOf = Callable[[Node], str]
#: Lines that are shown before and after a line with time.
AROUND: Final = 3
#: Maximum number of lines that are shown of all files together.
LINES_MAX: Final = 500


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


class LineCost(NamedTuple):
    """What the ops of a line cost.

    ``time_ns`` and ``runs``: per step. ``ops``: number of nodes; ``layer``: the layer with most of
    the time, '' without one.
    """

    time_ns: float
    runs: float
    ops: int
    layer: str


def line_costs(nodes: Sequence[Node], steps: int) -> dict[tuple[str, int], LineCost]:
    """Return the cost of each line with time by (file, line), the largest first.

    A node counts at the innermost of the user's lines, and a gradient at that of its forward op.
    Counters of ``nodes`` are sums over ``steps``, with times in ns.
    """
    stack_of, layer_of = stack_lookup(nodes), short_layer_lookup(nodes)
    by_line: dict[tuple[str, int], list[Node]] = {}
    for node in nodes:
        frame = own_frame(stack_of(node))
        if frame is not None and frame.line > 0 and node.stats.micros:  # generated code may have no line
            by_line.setdefault((frame.file, frame.line), []).append(node)
    costs = {place: _cost(group, [layer_of(node) for node in group], steps) for place, group in by_line.items()}
    return dict(sorted(costs.items(), key=lambda item: (-item[1].time_ns, item[0])))


def _cost(nodes: Sequence[Node], layers: Sequence[str], steps: int) -> LineCost:
    times: Counter[str] = Counter()
    for node, layer in zip(nodes, layers, strict=True):
        times[layer] += node.stats.micros
    runs = sum(node.stats.runs for node in nodes)
    return LineCost(times.total() / steps, runs / steps, len(nodes), times.most_common(1)[0][0])


def shown_lines(costs: Mapping[tuple[str, int], LineCost]) -> dict[str, list[int]]:
    """Return the numbers of the lines to show by file: those with most time, and those around them.

    There are at most LINES_MAX lines in all. Files are in the order of their most expensive line,
    lines in that of the file.
    """
    shown: dict[str, set[int]] = {}
    room = LINES_MAX
    for file, line in costs:
        region = set(range(max(1, line - AROUND), line + AROUND + 1)) - shown.get(file, set())
        if len(region) > room:
            break
        room -= len(region)
        shown.setdefault(file, set()).update(region)
    return {file: sorted(lines) for file, lines in shown.items()}
