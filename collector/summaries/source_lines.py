"""The costs of the user's source lines, and the regions of their files around them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..tfviews.nodes import Node
from ..tfviews.places import own_frame, short_layer_lookup, stack_lookup

#: Lines that are shown before and after a line with time.
AROUND: Final = 3
#: Maximum number of lines that are shown of all files together.
LINES_MAX: Final = 500


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
        if frame is not None and node.stats.micros:
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
