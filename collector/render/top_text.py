"""The current state of all jobs as text: a line for each, as wide as the terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .. import numbers
from ..query.watching import WatchedHost, WatchedJob, WatchedStore
from ..summaries.jobs import ENDED
from .cells import cells, first_cells
from .jobs_text import lost, state
from .overview_text import clipped
from .table import Column, render

#: Minimum factor of a change that is shown.
_CHANGE_MIN: Final = 1.3
#: Minimum widths of cells, so that columns do not move between updates.
_TREND_WIDTH, _CHANGE_WIDTH, _IO_WIDTH = 8, 7, 10
_COLUMNS: Final = (
    Column("ID"),
    Column("NAME", min_width=12, preferred_width=36),
    Column("USER", min_width=4, drop_priority=15),
    Column("HOST", min_width=4, drop_priority=16),
    Column("STATE", min_width=8, preferred_width=14),
    Column("TIME/STEP", right=True),
    Column("TREND", drop_priority=3),
    Column("CHANGE", right=True, drop_priority=1),
    Column("ALERT", drop_priority=1),
    Column("STEPS/S", right=True, drop_priority=4),
    Column("STEPS", right=True, drop_priority=7),
    Column("CPU", right=True, drop_priority=5),
    Column("MEMORY", right=True, drop_priority=6),
    Column("I/O", right=True, drop_priority=12),
    Column("DEVICE", min_width=5, drop_priority=11),
    Column("COST", right=True, drop_priority=8),
    Column("LOST", right=True, drop_priority=9),
    Column("FOR", right=True, drop_priority=10),
)


class TopTable(NamedTuple):
    """The column titles, and a line for each job."""

    head: str
    jobs: list[str]


def _change(job: WatchedJob) -> str:
    if job.idle_ns is not None:
        return "no step"
    change = job.pace.change
    if change is None or 1 / _CHANGE_MIN < change < _CHANGE_MIN:
        return ""
    return numbers.factor(change)


def _time(job: WatchedJob) -> str:
    """Return the current step time; for an ended job, the mean of all steps.

    If the job has made no step for a long time, return the time since the last step instead.
    """
    if job.idle_ns is not None:
        return f">{numbers.duration(job.idle_ns)}"
    return numbers.duration(job.row.step_ns if job.row.phase == ENDED else job.pace.step_ns)


def _rate(value: float | None) -> str:
    return "-" if value is None else numbers.quantity(round(value, 2))


def _cells(job: WatchedJob) -> list[str]:
    row = job.row
    return [
        row.id,
        row.name or "-",
        row.user or "-",
        row.host or "-",
        state(row),
        _time(job),
        numbers.sparkline(clipped(job.pace.trend), _TREND_WIDTH).ljust(_TREND_WIDTH),
        _change(job).rjust(_CHANGE_WIDTH),
        job.alert or "",
        _rate(job.pace.per_s),
        numbers.count(row.steps),
        numbers.cores(job.usage.cpu_cores),
        numbers.size(job.usage.memory_bytes),
        numbers.rate(job.usage.io_bytes_per_s).rjust(_IO_WIDTH),
        ",".join(job.devices) or "-",
        numbers.cost(row.cost),
        lost(row),
        numbers.duration(row.duration_ns),
    ]


def lines(jobs: Sequence[WatchedJob], width: int | None) -> TopTable:
    """Return the table of ``jobs``, at most ``width`` wide if possible."""
    head, *rows = render(_COLUMNS, [_cells(job) for job in jobs], width=width)
    return TopTable(head, rows)


def summary(watched: WatchedStore) -> list[str]:
    """Return the parts of the line above the table: time, number of jobs, hosts.

    The most important part comes first.
    """
    states = Counter(job.row.phase for job in watched.jobs)
    counts = [f"{states[phase]} {phase}" for phase in ("running", "starting", "ended") if states[phase]]
    counts += [f"{watched.damaged} damaged"] if watched.damaged else []
    parts = [numbers.time_of_day(watched.at_ns, whole_seconds=True), ", ".join(counts) or "no jobs"]
    return [*parts, *(part for host in watched.hosts for part in _host(host))]


def _host(host: WatchedHost) -> Iterator[str]:
    yield f"{host.name}: {numbers.cores(host.cpu_cores)} of {host.cpus} cores"
    yield f"load {host.load_1m:.1f}"
    yield f"{numbers.size(host.memory_used_bytes)} of {numbers.size(host.memory_bytes)}"


def fitted(parts: Sequence[str], width: int | None) -> str:
    """Return one line with as many of the first parts as fit."""
    number = len(parts)
    while width is not None and number > 1 and cells(" · ".join(parts[:number])) > width:
        number -= 1
    text = " · ".join(parts[:number])
    return text if width is None else first_cells(text, width)
