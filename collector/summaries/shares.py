"""Time per step of groups of nodes: its spread, and a ranking by the median."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import add
from statistics import median
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

#: Times of nodes in µs by name, one for each selected step.
Times = Mapping[str, Sequence[int]]


class Share(NamedTuple, Generic[K]):
    """The minimum, median and maximum time per step of a group of nodes.

    ``share``: its share of the sum of the medians of all groups.
    """

    key: K
    least_us: int
    median_us: float
    most_us: int
    share: float


def shares(groups: Iterable[tuple[K, str]], times: Times) -> list[Share[K]]:
    """Return the groups with any time, largest median first.

    ``groups`` are pairs (key, name of a node). If no group runs in at least half of the steps,
    shares refer to the sums instead of the medians.
    """
    sums: dict[K, list[int]] = {}
    for key, name in groups:
        node_times = times.get(name)
        if node_times:
            sums[key] = list(map(add, sums[key], node_times)) if key in sums else list(node_times)
    medians = {key: median(step_times) for key, step_times in sums.items() if any(step_times)}
    weights = medians if any(medians.values()) else {key: sum(sums[key]) for key in medians}
    total = sum(weights.values())
    results = [Share(key, min(sums[key]), medians[key], max(sums[key]), weights[key] / total) for key in medians]
    return sorted(results, key=lambda result: (-result.share, -sum(sums[result.key]), str(result.key)))
