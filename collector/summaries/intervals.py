"""Time that sets of intervals cover."""

from collections.abc import Iterable

Interval = tuple[int, int]


def covered(intervals: Iterable[Interval]) -> int:
    """Return the length of the union of ``intervals``, each (start, end)."""
    return sum(end - start for start, end in union(intervals))


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of ``intervals`` as disjoint intervals, sorted; empty ones are left out."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def exposed(intervals: Iterable[Interval], others: Iterable[Interval]) -> int:
    """Return the length of the part of the union of ``intervals`` that ``others`` do not cover."""
    covers = union(others)
    return covered([*intervals, *covers]) - covered(covers)
