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


def exposed(intervals: Iterable[Interval], others: Iterable[Interval]) -> int:
    """Return the length of the part of the union of ``intervals`` that ``others`` do not cover."""
    covers = list(others)
    return covered([*intervals, *covers]) - covered(covers)
