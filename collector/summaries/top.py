"""Op types, ranked by their time in a step, and those that take longer than before."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Final, Generic, NamedTuple, TypeVar

from ..tfviews.nodes import Node, total_of
from ..tfviews.places import Places
from ..tfviews.rows import extremes

K = TypeVar("K", bound=Hashable)

#: Times of nodes in ns by name, one for each of the same steps; nodes that did not run are missing.
Times = Mapping[str, Sequence[int]]
#: Maximum number of changes, and the share of all growth that each exceeds.
CHANGES_MAX: Final = 3
_SHARE_MIN: Final = 0.05
#: A device of another process: job and task.
_TASK: Final = re.compile(r"/job:(?!localhost/)([^/]+)/(?:replica:\d+/)?task:(\d+)/")


class Share(NamedTuple, Generic[K]):
    """The time per step of a group of nodes, and the shortest and the longest time in a step.

    ``share``: the group's share of the time of all groups.
    """

    key: K
    ns: float
    least_ns: int
    most_ns: int
    share: float


def shares(groups: Iterable[tuple[K, Node]], times: Times, steps: int) -> list[Share[K]]:
    """Return the groups with any time, the longest time first.

    ``groups`` are pairs of a key and a node, with sums over ``steps`` steps.
    """
    sums: dict[K, int] = {}
    step_times: dict[K, list[int]] = {}
    for key, node in groups:
        sums[key] = sums.get(key, 0) + node.stats.micros
        if node_times := times.get(node.name):
            step_times[key] = list(map(add, step_times[key], node_times)) if key in step_times else list(node_times)
    whole = sum(sums.values())
    results = [
        Share(key, time / steps, *_extremes(step_times.get(key, ()), time / steps), time / whole)
        for key, time in sums.items()
        if time > 0
    ]
    return sorted(results, key=lambda result: (-result.ns, str(result.key)))


def _extremes(times: Sequence[int], ns: float) -> tuple[int, int]:
    return extremes(times, ns) if times else (0, 0)


@dataclass(frozen=True, slots=True)
class TopOp:
    """One op type on one device: its time, calls and bytes per step, and its slowest line.

    ``ns``, ``least_ns``, ``most_ns`` and ``share`` are those of Share. ``calls`` and
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
    """Return the short form of a device's name: CPU:0, or GPU:1 STREAM:ALL, or worker:1 GPU:0."""
    device, _, stream = device.partition("/stream:")
    task, name = _TASK.search(device), device.rsplit("/", 1)[-1].removeprefix("device:").upper() or "-"
    name = f"{name} STREAM:{stream.upper()}" if stream else name
    return f"{task[1]}:{task[2]} {name}" if task else name


def short_devices(node: Node) -> str:
    """Return the short forms of a node's devices."""
    return ",".join(map(short_device, node.devices)) or "-"


def top_ops(nodes: Sequence[Node], times: Times, steps: int) -> list[TopOp]:
    """Return the (op type, device) pairs with any time, the longest time first.

    ``nodes`` have sums over ``steps`` steps; ``times`` are the nodes' times in some of these steps.
    """
    places = Places(nodes)
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[node.op, short_devices(node)].append(node)
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


@dataclass(frozen=True, slots=True)
class OpChange:
    """An op type on a device, with its time per step before and now.

    ``line``: the user's line with the most time of these ops.
    """

    op: str
    device: str
    before_ns: float
    now_ns: float
    line: str


def op_changes(before: Sequence[TopOp], now: Sequence[TopOp]) -> tuple[OpChange, ...]:
    """Return up to CHANGES_MAX ops with the largest growth of their time, largest first.

    Each has more than _SHARE_MIN of the growth of all ops that take longer.
    """
    before_ns = {(op.op, op.device): op.ns for op in before}
    changes = [OpChange(op.op, op.device, before_ns.get((op.op, op.device), 0.0), op.ns, op.line) for op in now]
    growth = sum(max(0.0, change.now_ns - change.before_ns) for change in changes)
    large_changes = [change for change in changes if change.now_ns - change.before_ns > _SHARE_MIN * growth]
    return tuple(sorted(large_changes, key=lambda change: change.before_ns - change.now_ns)[:CHANGES_MAX])
