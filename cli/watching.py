"""Steps of a running job as lines, read from its channel without a daemon."""

import statistics
from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from ..agent.channels import ChannelReader
from ..collector.numbers import duration
from ..formats import layout

#: Maximum number of consecutive entries of one kind that get a line each. If there are more, they
#: share one line.
LINES_MAX: Final = 10
#: Maximum number of entries that are read at once. The job may write as many meanwhile.
_ENTRIES_MAX: Final = layout.SPAN_COUNT // 2
_STATES: Final = ((layout.FLAG_FAILED, "failed"), (layout.FLAG_TRACED, "traced"), (layout.FLAG_SETUP, "setup"))
_TRACED_BY_JOB: Final = layout.FLAG_TRACED | layout.FLAG_REQUESTED


class _Entry(NamedTuple):
    kind: int
    first: int
    steps: int
    mean_ns: int
    flags: int


class StepReader:
    """A reader of new entries in the span ring of ``channel``.

    It leaves the entries in the ring: the agent still reads all of them.
    """

    def __init__(self, channel: ChannelReader) -> None:
        self._channel = channel
        self._position = channel.word("span_head")

    def lines(self) -> Iterator[str]:
        """Yield a line for each entry since the last call; many entries of a kind share a line."""
        self._position = max(self._position, self._channel.word("span_head") - _ENTRIES_MAX)
        ring_slice = self._channel.spans.read(self._position, _ENTRIES_MAX, ended=False)
        if ring_slice is None:
            return
        self._position = ring_slice.end
        rows = [_entry(row) for row in layout.SPAN.iter_unpack(ring_slice.data)]
        kinds = {number: kind for number, kind in self._channel.kinds().items() if kind.role == layout.STEP_ROLE}
        for number, entries in groupby((row for row in rows if row.kind in kinds), key=lambda row: row.kind):
            yield from _lines(kinds[number].name, list(entries))


def _entry(row: tuple[int, ...]) -> _Entry:
    _, total, ordinal, count, kind, flags = row[:6]
    return _Entry(kind, ordinal, max(count, 1), total // max(count, 1), flags)


def _lines(kind: str, entries: list[_Entry]) -> Iterator[str]:
    if len(entries) <= LINES_MAX:
        yield from (_line(kind, entry) for entry in entries)
        return
    last = entries[-1].first + entries[-1].steps - 1
    times = [entry.mean_ns for entry in entries]
    traced_count = sum(entry.flags & _TRACED_BY_JOB == layout.FLAG_TRACED for entry in entries)
    yield (
        f"{_range(kind, entries[0].first, last)}  median {duration(statistics.median(times))}, "
        f"{duration(min(times))} to {duration(max(times))}" + (f", {traced_count} traced" if traced_count else "")
    )


def _line(kind: str, entry: _Entry) -> str:
    states = [word for flag, word in _STATES if entry.flags & flag]
    if entry.flags & layout.FLAG_REQUESTED:
        states.append("by the job itself")
    suffix = " each" if entry.steps > 1 else ""
    time = f"{duration(entry.mean_ns):>8}{suffix}"
    return "  ".join([_range(kind, entry.first, entry.first + entry.steps - 1), time, *states])


def _range(kind: str, first: int, last: int) -> str:
    return f"{kind} {first if first == last else f'{first}-{last}'}".ljust(20)
