"""Op types, ranked by their time in a step."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..tfviews.nodes import Node, total_of
from ..tfviews.places import Places
from .shares import Times, shares


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
    places = Places(nodes)
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[node.op, short_device("|".join(node.devices))].append(node)
    ops = []
    for key, ns, least_ns, most_ns, share in shares(
        ((key, node) for key, group in groups.items() for node in group), times, steps
    ):
        stats, line = total_of(groups[key]), heaviest(groups[key], places.line)
        ops.append(TopOp(*key, ns, least_ns, most_ns, share, stats.runs / steps, stats.bytes / steps, line))
    return ops


def heaviest(nodes: Sequence[Node], place_of: Callable[[Node], str]) -> str:
    """Return the place with most of the time of ``nodes``, '' if unknown.

    ``place_of``: the method `line` or `location` of Places.
    """
    weights: dict[str, int] = defaultdict(int)
    for node in nodes:
        if place := place_of(node):
            weights[place] += node.stats.micros
    return max(weights, key=weights.__getitem__, default="")
