"""The list of jobs as text."""

import signal
import time
from collections.abc import Sequence
from typing import Final

from .. import numbers
from ..query.listing import ListedJob, UnreadableJob
from ..summaries.jobs import STARTING, JobRow
from .table import Column, render

_COLUMNS: Final = (
    Column("ID"),
    Column("NAME", min_width=12, preferred_width=60),
    Column("USER", min_width=4, drop_priority=12),
    Column("HOST", min_width=4, drop_priority=10),
    Column("PID", right=True, drop_priority=8),
    Column("FRAMEWORK", min_width=9, drop_priority=11),
    Column("STEPS", right=True),
    Column("MEAN STEP", right=True, drop_priority=2),
    Column("CPU", right=True, drop_priority=3),
    Column("MEMORY", right=True, drop_priority=4),
    Column("TRACED", right=True, drop_priority=6),
    Column("COST", right=True, drop_priority=5),
    Column("LOST", right=True, drop_priority=7),
    Column("STATE", min_width=8, preferred_width=14),
    Column("FOR", right=True, drop_priority=9),
    Column("STARTED", drop_priority=13),
    Column("TAGS", min_width=8, preferred_width=20, drop_priority=1),
)
_FRAMEWORKS: Final = {"tensorflow": "TF"}
_DAY_NS: Final = 24 * 3600 * 10**9


def framework(row: JobRow) -> str:
    """Return framework and version in short form, for example TF 2.21.0."""
    name = _FRAMEWORKS.get(row.framework, row.framework)
    return f"{name} {row.framework_version}".strip() or "-"


def lost(row: JobRow) -> str:
    """Return the number of a job's lost records and span entries, for a column."""
    return "unknown" if row.lost is None else numbers.count(row.lost)


def cost_part(row: JobRow) -> str:
    """Return the cost of profiling for a line of text, empty if unknown."""
    return "" if row.cost is None else f"cost {numbers.total_cost(row.cost, row.steps_ns)}"


def traced_part(row: JobRow) -> str:
    """Return the number of traced steps and their cost, for a line of text."""
    cost = cost_part(row)
    return f"{numbers.count(row.traced)} {'step' if row.traced == 1 else 'steps'} traced" + (
        f" ({cost})" if cost else ""
    )


def lost_part(row: JobRow) -> str:
    """Return the number of a job's lost records and span entries, for a line of text."""
    return f"{'an unknown number' if row.lost is None else numbers.count(row.lost)} lost"


def state(row: JobRow) -> str:
    """Return the state of a job, with its exit status or signal.

    Examples: starting, running, exited 1, killed SIGKILL.
    """
    if row.phase == STARTING:
        return STARTING
    if row.signal:
        try:
            return f"{row.state} {signal.Signals(row.signal).name}"
        except ValueError:
            return f"{row.state} {row.signal}"
    if row.odd_times:
        return f"{row.state}, odd times"
    return f"{row.state} {row.status}" if row.status else row.state


def start_text(row: JobRow, now_ns: int) -> str:
    """Return the start of a job: the time of day, with the date if it was more than a day ago."""
    time_format = "%H:%M:%S" if now_ns - row.started_ns < _DAY_NS else "%Y-%m-%d %H:%M"
    return time.strftime(time_format, time.localtime(row.started_ns / 1e9))


def _cells(job: ListedJob | UnreadableJob, now_ns: int) -> list[str]:
    row = job.row
    if isinstance(job, UnreadableJob) or not row.started_ns:  # only the id is known
        return [{"ID": row.id, "STATE": row.state, "TAGS": ""}.get(column.title, "-") for column in _COLUMNS]
    return [
        row.id,
        row.name or "-",
        row.user or "-",
        row.host or "-",
        str(row.pid or "-"),
        framework(row),
        numbers.count(row.steps),
        numbers.duration(row.step_ns),
        numbers.cores(job.usage.cpu_cores),
        numbers.size(job.usage.memory_bytes),
        numbers.count(row.traced if job.traced is None else job.traced),
        numbers.cost(row.cost),
        lost(row),
        state(row),
        numbers.duration(row.duration_ns),
        start_text(row, now_ns),
        ", ".join(job.tags),
    ]


def lines(jobs: Sequence[ListedJob | UnreadableJob], now_ns: int, width: int | None) -> list[str]:
    """Return a table of jobs; a narrow terminal drops some columns so that names stay readable."""
    columns = _COLUMNS if any(isinstance(job, ListedJob) and job.tags for job in jobs) else _COLUMNS[:-1]
    return render(columns, [_cells(job, now_ns)[: len(columns)] for job in jobs], width=width)
