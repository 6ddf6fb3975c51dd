"""Op types, ranked by their time in a step."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..tfviews.nodes import Node, total_of
from ..tfviews.own_files import Stack, own_line, own_location, stack_lookup
from .shares import Times, shares

#: Looks up the stack of a node, made by `stack_lookup`.
StackOf = Callable[[Node], Stack | None]


@dataclass(frozen=True, slots=True)
class TopOp:
    """One op type on one device: its time, calls and bytes per step, and its slowest line.

    ``ns``, ``least_ns``, ``most_ns`` and ``share`` are those of shares.Share. ``calls`` and
    ``bytes`` are means. ``line``: the user's line with the most time of these ops.
    """

    op: str
    device: str
    ns: float
    least_ns: int
    most_ns: int
    share: float
    calls: float
    bytes: float
    line: str


def short_device(device: str) -> str:
    """Return the short form of a device's name: CPU:0, GPU:1."""
    return device.rsplit("/", 1)[-1].removeprefix("device:").upper() or "-"


def top_ops(nodes: Sequence[Node], times: Times, steps: int) -> list[TopOp]:
    """Return the (op type, device) pairs with any time, the longest time first.

    ``nodes`` have sums over ``steps`` steps; ``times`` are the nodes' times in some of these steps.
    """
    stack_of = stack_lookup(nodes)
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[node.op, short_device("|".join(node.devices))].append(node)
    ops = []
    for key, ns, least_ns, most_ns, share in shares(
        ((key, node) for key, group in groups.items() for node in group), times, steps
    ):
        stats, line = total_of(groups[key]), top_line(groups[key], stack_of)
        ops.append(TopOp(*key, ns, least_ns, most_ns, share, stats.runs / steps, stats.bytes / steps, line))
    return ops


def top_line(nodes: Sequence[Node], stack_of: StackOf) -> str:
    """Return the user's line with most of the time of ``nodes``, '' if unknown."""
    return _heaviest_line(nodes, stack_of, own_line)


def top_location(nodes: Sequence[Node], stack_of: StackOf) -> str:
    """Return the line as ``top_line`` does, with its function."""
    return _heaviest_line(nodes, stack_of, own_location)


def _heaviest_line(nodes: Sequence[Node], stack_of: StackOf, line_of: Callable[[Stack | None], str]) -> str:
    weights: dict[str, int] = defaultdict(int)
    for node in nodes:
        if line := line_of(stack_of(node)):
            weights[line] += node.stats.micros
    return max(weights, key=weights.__getitem__, default="")
