"""The end report of a launch: about a dozen lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..numbers import count, duration, percent, size
from ..summaries.jobs import JobRow
from ..summaries.parts import Breakdown
from ..summaries.top import TopOp
from .breakdown_text import parts_texts
from .jobs_text import lost_part, state, traced_part
from .table import Column, render
from .wrapping import wrapped

#: Maximum number of jobs with a line, and of ops.
JOBS_MAX: Final = 3
OPS_MAX: Final = 5
#: Width of the table where there is no terminal.
_WIDTH: Final = 80
_COLUMNS: Final = (
    Column("op", min_width=12, preferred_width=40),
    Column("device", drop_priority=2),
    Column("calls/step", right=True, drop_priority=5),
    Column("time/step", right=True),
    Column("share", right=True),
    Column("min", right=True, drop_priority=4),
    Column("max", right=True, drop_priority=3),
    Column("memory/step", right=True, drop_priority=6),
    Column("line", min_width=12, preferred_width=30),
)


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job with the median time of its untraced steps of one kind, in ns.

    ``function``: the kind, if the job called several functions.
    """

    row: JobRow
    median_ns: float | None
    function: str = ""


def _counts(row: JobRow) -> str:
    epochs = f"{count(row.epochs)} {'epoch' if row.epochs == 1 else 'epochs'}, " if row.epochs else ""
    return f"{epochs}{count(row.steps)} {'step' if row.steps == 1 else 'steps'}"


def _summary_line(summary: JobSummary, with_pid: bool) -> str:
    row = summary.row
    parts = [f"tfprof: job {row.id} {row.name}".rstrip() + (f" pid {row.pid}" if with_pid else ""), _counts(row)]
    if summary.median_ns is not None:
        parts.append(f"median {summary.function or 'step'} {duration(summary.median_ns)}")
    parts += [traced_part(row), lost_part(row)]
    if row.signal or row.status or row.state == "lost":
        parts.append(state(row))
    return " · ".join(parts)


def _calls(number: float) -> str:
    return count(round(number)) if number >= 10 or number == round(number) else f"{number:.1f}"


def _cells(op: TopOp, has_memory: bool) -> list[str]:
    times = list(map(duration, (op.ns, op.least_ns, op.most_ns)))
    memory = size(op.bytes if has_memory else None)
    return [op.op, op.device, _calls(op.calls), times[0], percent(op.share), *times[1:], memory, op.line or "-"]


def ops_table(ops: Sequence[TopOp], width: int) -> list[str]:
    """Return the table of the first OPS_MAX of ``ops``.

    If memory was not recorded, the column of memory shows `-`, since 0 would be wrong.
    """
    has_memory = any(op.bytes for op in ops)
    rows = [_cells(op, has_memory) for op in ops[:OPS_MAX]]
    if any(op.line for op in ops[:OPS_MAX]):
        return render(_COLUMNS, rows, "  ", width)
    return render(_COLUMNS[:-1], [row[:-1] for row in rows], "  ", width)


def job_lines(summaries: Sequence[JobSummary], width: int | None) -> Iterator[str]:
    """Yield a line per job, wrapped at ``width``."""
    for summary in summaries[:JOBS_MAX]:
        yield from wrapped(_summary_line(summary, with_pid=len(summaries) > 1), width)
    if len(summaries) > JOBS_MAX:
        yield f"tfprof: and {len(summaries) - JOBS_MAX} more processes: tfprof jobs"


def lines(
    summaries: Sequence[JobSummary],
    ops: Sequence[TopOp],
    notes: Sequence[str],
    width: int | None,
    parts: Breakdown | None = None,
) -> Iterator[str]:
    """Yield a line per job, the parts of a step, the first of ``ops``, and further commands.

    Lines are wrapped at ``width``, unless it is None (no terminal).
    """
    yield from job_lines(summaries, width)
    if parts:
        first, *others = parts_texts(parts)
        yield from wrapped(f"tfprof: {first}: {', '.join(others)}", width)
    if ops:
        yield from ops_table(ops, width or _WIDTH)
    for note in notes:
        yield from wrapped(f"tfprof: {note}", width)
    if summaries:
        job_id = summaries[0].row.id
        commands = [f"tfprof op {job_id}"] if ops else []
        parts_commands = [f"tfprof breakdown {job_id}"] if parts else []
        yield "tfprof: more with  " + " · ".join([*commands, *parts_commands, f"tfprof steps {job_id}"])
