"""Which rows of a job count: batches list the rows that were inserted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .clickhouse_tables import GROUP_TABLES


class Range(NamedTuple):
    """Rows of a table of a job, from index ``first`` to before ``end``, as a batch has them."""

    batch: int
    first: int
    end: int


#: Table -> its ranges; together they cover the rows from 0 on, each row once.
Ranges = Mapping[str, Sequence[Range]]


def covering(batches: Iterable[tuple[bytes, int, int, int]]) -> dict[str, list[Range]]:
    """Return the ranges that count.

    ``batches``: table, batch, index of the first row, number of rows. Several copies of a job may
    overlap. All of them have the same rows in the same order, but groups of traces may differ, so
    the ranges of GROUP_TABLES are not cut.
    """
    listed: dict[str, list[Range]] = {}
    for name, batch, first, rows in batches:
        listed.setdefault(name.decode(errors="replace"), []).append(Range(batch, first, first + rows))
    return {name: _covering(ranges, may_cut=name not in GROUP_TABLES) for name, ranges in listed.items()}


def _covering(listed: Sequence[Range], *, may_cut: bool) -> list[Range]:
    ranges, end = list[Range](), 0
    while fitting := [each for each in listed if each.first <= end < each.end and (may_cut or each.first == end)]:
        longest = max(fitting, key=lambda each: (each.end, each.batch))
        ranges.append(longest._replace(first=end))
        end = longest.end
    return ranges


def row_counts(ranges: Ranges) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {name: parts[-1].end for name, parts in ranges.items() if parts}


def condition(ranges: Sequence[Range], start: int = 0, end: int | None = None) -> str:
    """Return the condition that a row is in ``ranges``.

    ``start`` and ``end``: its index is at least ``start``, and below ``end``.
    """
    parts = [(each.batch, max(each.first, start), each.end if end is None else min(each.end, end)) for each in ranges]
    texts = [f"(batch = {batch} AND row >= {low} AND row < {high})" for batch, low, high in parts if low < high]
    return f"({' OR '.join(texts)})" if texts else "1 = 0"
