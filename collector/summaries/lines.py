"""Steps as lines of a log: a line for each step, or for each second with many steps."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...formats import layout
from ...formats.layout import SECOND_NS
from .kinds import kind_name, step_kind_of

#: Maximum number of lines for one kind and second; if there are more steps, they share one line.
LINES_PER_SECOND_MAX: Final = 10
#: A second is complete when a step of a later second has ended, or when this time has passed.
#: Entries arrive about two seconds late.
_WAIT_NS: Final = 4 * SECOND_NS


@dataclass(frozen=True, slots=True)
class StepLine:
    """A line for ``count`` spans of one kind, numbered from ``first`` to ``last``.

    ``entries``: number of recorded entries. ``timed``: number of spans that were timed. ``end_ns``:
    end of the last span (real time). ``mean_ns``, ``min_ns`` and ``max_ns`` are 0 if no span was
    timed.
    """

    kind: str
    first: int
    last: int
    count: int
    end_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    traced: int
    failed: int
    setup: int
    timed: int
    entries: int


Row = Mapping[str, Any]


def _end(row: Row) -> int:
    """Return the end of the last span of an entry.

    The result is too early if the entry was not sampled, and there are pauses between its spans.
    """
    return int(row["start_ns"] + row["total_ns"])


def _kind(row: Row) -> int:
    return step_kind_of(row["kind"], row["key"])


def step_line(rows: list[Row], functions: Mapping[int, str]) -> StepLine:
    """Return the line for ``rows``, which are entries of one kind."""

    def flagged_count(flag: int) -> int:
        return sum(row["count"] for row in rows if row["flags"] & flag)

    count, total = sum(row["count"] for row in rows), sum(row["total_ns"] for row in rows)
    sampled = [row for row in rows if row["flags"] & layout.FLAG_SAMPLED]
    untimed = sum(row["count"] - (not row["flags"] & layout.FLAG_FAILED) for row in sampled)
    return StepLine(
        kind=kind_name(_kind(rows[0]), functions),
        first=min(row["ordinal"] for row in rows),
        last=max(row["ordinal"] + row["count"] - 1 for row in rows),
        count=count,
        end_ns=max(map(_end, rows)),
        mean_ns=total / count if count else 0.0,
        min_ns=min((row["min_ns"] for row in rows if row["max_ns"]), default=0),
        max_ns=max(row["max_ns"] for row in rows),
        traced=flagged_count(layout.FLAG_TRACED) - flagged_count(layout.FLAG_REQUESTED),
        failed=flagged_count(layout.FLAG_FAILED),
        setup=flagged_count(layout.FLAG_SETUP),
        timed=count - untimed,
        entries=len(rows),
    )


class StepLines:
    """Makes the lines of a job from its entries as they arrive.

    ``line_per_entry``: whether every entry has its own line at once, however many there are.
    ``functions``: the names of functions by key, as far as they are known.
    """

    def __init__(self, *, line_per_entry: bool = False) -> None:
        self._line_per_entry = line_per_entry
        self.functions: Mapping[int, str] = {}
        self._rows: dict[tuple[int, int], list[Row]] = {}
        self._last_end_ns = 0

    def add(self, rows: Iterable[Row], now_ns: int) -> list[StepLine]:
        """Add rows of SPANS; return the lines of the seconds that are complete at ``now_ns``.

        The lines are in order of time. Activities have no lines.
        """
        for row in rows:
            if row["kind"] == layout.ACTIVITY:
                continue
            end_ns = _end(row)
            self._last_end_ns = max(self._last_end_ns, end_ns)
            self._rows.setdefault((end_ns // SECOND_NS, _kind(row)), []).append(row)
        current_second = max(self._last_end_ns, now_ns - _WAIT_NS) // SECOND_NS
        return self._take_lines(lambda second: self._line_per_entry or second < current_second)

    def remaining(self) -> list[StepLine]:
        """Return the lines of the remaining entries."""
        return self._take_lines(lambda _second: True)

    def _take_lines(self, is_complete: Any) -> list[StepLine]:
        keys = [key for key in self._rows if is_complete(key[0])]
        lines = [line for key in keys for line in self._lines(self._rows.pop(key))]
        return sorted(lines, key=lambda line: (line.end_ns, -line.mean_ns))

    def _lines(self, rows: list[Row]) -> Iterator[StepLine]:
        if self._line_per_entry or sum(row["count"] for row in rows) <= LINES_PER_SECOND_MAX:
            yield from (step_line([row], self.functions) for row in rows)
        else:
            yield step_line(rows, self.functions)
