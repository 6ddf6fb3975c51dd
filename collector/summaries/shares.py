"""Time per step of groups of nodes, ranked."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import add
from typing import Generic, NamedTuple, TypeVar

from ..tfviews.nodes import Node
from ..tfviews.rows import extremes

K = TypeVar("K", bound=Hashable)

#: Times of nodes in ns by name, one for each of the same steps; nodes that did not run are missing.
Times = Mapping[str, Sequence[int]]


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
