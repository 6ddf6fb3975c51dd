"""The end report of a launch: a dozen lines at most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tfprof.collector.render.jobs_text import state
from tfprof.collector.render.numbers import count, duration, percent, size
from tfprof.collector.render.table import Column, clean, render
from tfprof.collector.views.jobs import JobRow
from tfprof.collector.views.top import TopOp

#: Processes of a launch that get a line, and ops of its first process.
PROCESSES: Final = 3
OPS: Final = 5
_COLUMNS: Final = (
    Column("op", least=12),
    Column("device"),
    Column("calls", right=True),
    Column("total", right=True),
    Column("share", right=True),
    Column("memory/step", right=True),
)


@dataclass(frozen=True, slots=True)
class Summary:
    """A process with the median of its untraced steps, in ns."""

    row: JobRow
    median_ns: float | None


def _counts(row: JobRow) -> str:
    epochs = f"{count(row.epochs)} {'epoch' if row.epochs == 1 else 'epochs'}, " if row.epochs else ""
    return f"{epochs}{count(row.steps)} {'step' if row.steps == 1 else 'steps'}"


def _summary(summary: Summary, named: bool) -> str:
    row = summary.row
    parts = [f"tfprof: job {row.id} {clean(row.name)}".rstrip() + (f" pid {row.pid}" if named else ""), _counts(row)]
    if summary.median_ns is not None:
        parts.append(f"median step {duration(summary.median_ns)}")
    cost = "" if row.cost is None else f" (cost {percent(max(0.0, row.cost))})"
    parts += [f"{count(row.traced)} {'step' if row.traced == 1 else 'steps'} traced{cost}", f"{count(row.lost)} lost"]
    if row.signal or row.status:
        parts.append(state(row))
    return " · ".join(parts)


def _cells(op: TopOp, traces: int, told: bool) -> list[str]:
    stats, memory = op.stats, size(op.stats.bytes / traces if told else None)
    return [op.op, op.device, count(stats.runs), duration(stats.micros * 1000), percent(op.share), memory]


def lines(
    summaries: Sequence[Summary], ops: Sequence[TopOp], traces: int, notes: Sequence[str], width: int
) -> Iterator[str]:
    """Yield a line a process, the first few of all ``ops`` of the ``traces`` traced steps, and where there is more."""
    for summary in summaries[:PROCESSES]:
        yield _summary(summary, named=len(summaries) > 1)
    if len(summaries) > PROCESSES:
        yield f"tfprof: and {len(summaries) - PROCESSES} more processes: tfprof jobs"
    if ops:
        # Where no op has any, TensorFlow told of none: not the same as none used.
        told = any(op.stats.bytes for op in ops)
        yield from render(_COLUMNS, [_cells(op, traces, told) for op in ops[:OPS]], indent="  ", width=width)
    for note in notes:
        yield f"tfprof: {clean(note)}"
    if summaries:
        short = summaries[0].row.id
        yield f"tfprof: more with  tfprof op {short} · tfprof steps {short}"
