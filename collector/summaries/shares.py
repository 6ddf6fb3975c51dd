"""Time of groups of nodes in a step and its spread over the steps, ranked by the median step."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import add
from statistics import median
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

#: Times in us of nodes by name, one for each of the steps that are looked at.
Times = Mapping[str, Sequence[int]]


class Share(NamedTuple, Generic[K]):
    """A group: its least, median and longest time of a step, in us, and its share of the median times of all groups."""

    key: K
    least_us: int
    median_us: float
    most_us: int
    share: float


def shares(groups: Iterable[tuple[K, str]], times: Times) -> list[Share[K]]:
    """Return the groups that took any time, most of a median step first; ``groups`` are pairs of a key and a node's name.

    Where no group runs in half of the steps or more, shares are of the sums.
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
