"""Ops by the time they took: what a report ends with."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tfprof.collector.views.nodes import Node, Stats, total


@dataclass(frozen=True, slots=True)
class TopOp:
    """One op type on one device: its sums, and its share of the time of all."""

    op: str
    device: str
    stats: Stats
    share: float


def short_device(device: str) -> str:
    """Return the end of a device's name as people say it: CPU:0, GPU:1."""
    return device.rsplit("/", 1)[-1].removeprefix("device:").upper() or "-"


def top_ops(nodes: Sequence[Node]) -> list[TopOp]:
    """Return the (op type, device) pairs that took any time, most time first."""
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in nodes:
        if node.stats.micros > 0:
            groups[node.op, short_device("|".join(node.devices))].append(node)
    sums = {key: total(group) for key, group in groups.items()}
    whole = sum(stats.micros for stats in sums.values())
    ranked = sorted(sums, key=lambda key: (-sums[key].micros, key))
    return [TopOp(*key, sums[key], sums[key].micros / whole) for key in ranked]
