"""Steady growth of a series of values."""

from collections.abc import Sequence
from statistics import fmean, median
from typing import Final, NamedTuple

#: Minimum share of the growth between neighboring thirds.
_STEADY_SHARE: Final = 0.25
#: The growth must exceed this multiple of the usual distance from the median of a third. Values
#: that grow evenly have 8; those of a buffer that fills and empties have 1 to 3 by chance.
_SCATTER_FACTOR: Final = 4.0


class Growth(NamedTuple):
    """The median of the first third of the values, and the increase to that of the last third."""

    first: float
    increase: float


def steady_growth(values: Sequence[float]) -> Growth | None:
    """Return the growth of ``values`` (three or more), None if it is not steady.

    The growth is steady if each third of the values is clearly above the one before, and the values
    scatter much less than they grow.
    """
    third = len(values) // 3
    parts = values[:third], values[third : 2 * third], values[2 * third :]
    first, second, last = map(median, parts)
    growth = last - first
    if min(second - first, last - second) <= growth * _STEADY_SHARE:
        return None
    scatter = fmean(median(abs(value - median(part)) for value in part) for part in parts)
    return Growth(first, growth) if growth > _SCATTER_FACTOR * scatter else None
