"""Steady growth of a series of values."""

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

#: Minimum share of the growth between neighboring thirds.
_STEADY_SHARE: Final = 0.25


class Growth(NamedTuple):
    """The median of the first third of the values, and the increase to that of the last third."""

    first: float
    increase: float


def steady_growth(values: Sequence[float]) -> Growth | None:
    """Return the growth of ``values`` (three or more), None if it is not steady.

    The growth is steady if each third of the values is clearly above the one before.
    """
    third = len(values) // 3
    first, second, last = (median(part) for part in (values[:third], values[third : 2 * third], values[2 * third :]))
    growth = last - first
    if min(second - first, last - second) <= growth * _STEADY_SHARE:
        return None
    return Growth(first, growth)
