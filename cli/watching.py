"""Steps of a running job as lines, read from its channel without a daemon."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ..agent.channels import ChannelReader
from ..collector.render import lines_text
from ..collector.summaries.lines import Row, step_line
from ..formats import layout

#: Maximum number of entries that get a line each. If there are more, those of a call share a line.
LINES_MAX: Final = 10
#: Maximum number of entries that are read at once. The job may write as many meanwhile.
_ENTRIES_MAX: Final = layout.SPAN_COUNT // 2
_COLUMNS: Final = ("start_ns", "total_ns", "ordinal", "count", "kind", "flags", "key", "thread", "min_ns", "max_ns")


class StepReader:
    """A reader of new entries in the span ring of ``channel``.

    It leaves the entries in the ring: the agent still reads all of them.
    """

    def __init__(self, channel: ChannelReader) -> None:
        self._channel = channel
        self._position = channel.word("span_head")

    def lines(self) -> Iterator[str]:
        """Yield a line for each entry since the last call; many entries of a call share a line."""
        self._position = max(self._position, self._channel.word("span_head") - _ENTRIES_MAX)
        ring_slice = self._channel.spans.read(self._position, _ENTRIES_MAX, ended=False)
        if ring_slice is None:
            return
        self._position = ring_slice.end
        kinds = {number: kind for number, kind in self._channel.kinds().items() if kind.role == layout.STEP_ROLE}
        rows = [row for row in map(self._row, layout.SPAN.iter_unpack(ring_slice.data)) if row["kind"] in kinds]
        groups: dict[Any, list[Row]] = defaultdict(list)
        for number, row in enumerate(rows):
            groups[number if len(rows) <= LINES_MAX else (row["kind"], row["key"])].append(row)
        for line_rows in groups.values():
            yield lines_text.step_line(replace(step_line(line_rows, {}), kind=kinds[line_rows[0]["kind"]].name))

    def _row(self, entry: tuple[int, ...]) -> Row:
        """Return an entry as a row of SPANS; its start is in real time."""
        row: dict[str, Any] = dict(zip(_COLUMNS, entry, strict=False))
        row["start_ns"] += self._channel.word("created_real_ns") - self._channel.word("created_mono_ns")
        row["count"] = max(row["count"], 1)
        return row
