"""Time that a set of intervals covers."""

from collections.abc import Iterable

Interval = tuple[int, int]


def covered(intervals: Iterable[Interval]) -> int:
    """Return the length of the union of ``intervals``, each (start, end)."""
    total, until = 0, None
    for start, end in sorted(intervals):
        if until is None or start > until:
            until = start
        if end > until:
            total += end - until
            until = end
    return total


def exposed(some: Iterable[Interval], others: Iterable[Interval]) -> int:
    """Return the length of the part of the union of ``some`` that ``others`` do not cover."""
    under = list(others)
    return covered([*some, *under]) - covered(under)
