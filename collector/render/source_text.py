"""The source lines of a job's ops as text."""

from collections.abc import Iterator
from typing import Final

from ..numbers import count, duration, percent
from ..query.job_source import JobSource, SourceFile
from .table import Column, render

_COLUMNS: Final = (
    Column("TIME/STEP", right=True),
    Column("SHARE", right=True),
    Column("OPS", right=True, drop_priority=2),
    Column("LAYER", drop_priority=3, preferred_width=16),
    Column("LINE", right=True),
    Column("CODE", min_width=20),
)


def lines(source: JobSource, width: int | None) -> Iterator[str]:
    """Yield the files, each with its path and a table of its lines."""
    if source.files:
        steps = "traced step" if source.traces == 1 else "traced steps"
        yield f"{count(source.traces)} {steps}, {duration(source.total_ns)} of ops a step, all threads together"
    for file in source.files:
        yield ""
        yield file.path
        if file.no_text:
            yield f"without text: {file.no_text}"
        yield from render(_COLUMNS, list(_rows(file, source.total_ns)), width=width)
    if source.left_out:
        yield f"and {count(source.left_out)} more lines with less time (tfprof code)"


def _rows(file: SourceFile, total_ns: float) -> Iterator[list[str]]:
    before = file.lines[0].number - 1 if file.lines else 0
    for line in file.lines:
        if line.number != before + 1 and not file.no_text:
            yield ["", "", "", "", "…", ""]
        before = line.number
        cost = line.cost
        share = percent(cost.time_ns / total_ns) if cost and total_ns else ""
        figures = [duration(cost.time_ns), share, count(cost.ops), cost.layer] if cost else ["", "", "", ""]
        yield [*figures, str(line.number), line.text or ""]
