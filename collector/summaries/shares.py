"""Time of groups of nodes per step and its spread, ranked by the median step."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import add
from statistics import median
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

#: Times of nodes in us, by name, one for each selected step.
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
        of_node = times.get(name)
        if of_node:
            sums[key] = list(map(add, sums[key], of_node)) if key in sums else list(of_node)
    medians = {key: median(of_key) for key, of_key in sums.items() if any(of_key)}
    weights = medians if any(medians.values()) else {key: sum(sums[key]) for key in medians}
    whole = sum(weights.values())
    found = [Share(key, min(sums[key]), medians[key], max(sums[key]), weights[key] / whole) for key in medians]
    return sorted(found, key=lambda one: (-one.share, -sum(sums[one.key]), str(one.key)))
