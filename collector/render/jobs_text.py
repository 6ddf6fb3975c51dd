"""The list of jobs as text."""

import signal
import time
from collections.abc import Sequence
from typing import Final

from .. import numbers
from ..summaries.jobs import JobRow
from .table import Column, render

_COLUMNS: Final = (
    Column("ID"),
    Column("NAME", least=12, fair=60),
    Column("USER", least=4, spare=8),
    Column("HOST", least=4, spare=6),
    Column("PID", right=True, spare=4),
    Column("FRAMEWORK", least=9, spare=7),
    Column("STEPS", right=True),
    Column("TRACED", right=True, spare=2),
    Column("LOST", right=True, spare=3),
    Column("STATE", least=7, fair=14),
    Column("FOR", right=True, spare=5),
    Column("STARTED", spare=9),
)
_FRAMEWORKS: Final = {"tensorflow": "TF"}
_DAY_NS: Final = 24 * 3600 * 10**9


def framework(row: JobRow) -> str:
    """Return framework and version in a few characters: TF 2.21.0."""
    name = _FRAMEWORKS.get(row.framework, row.framework)
    return f"{name} {row.framework_version}".strip() or "-"


def state(row: JobRow) -> str:
    """Return how a job is, or how it ended: running, exited 1, killed SIGKILL."""
    if row.signal:
        try:
            return f"{row.state} {signal.Signals(row.signal).name}"
        except ValueError:
            return f"{row.state} {row.signal}"
    return f"{row.state} {row.status}" if row.status else row.state


def started(row: JobRow, now_ns: int) -> str:
    """Return when a job began: the time of day, and the date before it where that is not plain."""
    form = "%H:%M:%S" if now_ns - row.started_ns < _DAY_NS else "%Y-%m-%d %H:%M"
    return time.strftime(form, time.localtime(row.started_ns / 1e9))


def _cells(row: JobRow, now_ns: int) -> list[str]:
    return [
        row.id,
        row.name or "-",
        row.user or "-",
        row.host or "-",
        str(row.pid or "-"),
        framework(row),
        numbers.count(row.steps),
        numbers.count(row.traced),
        numbers.count(row.lost),
        state(row),
        numbers.duration(row.duration_ns),
        started(row, now_ns),
    ]


def lines(rows: Sequence[JobRow], now_ns: int, width: int | None) -> list[str]:
    """Return a table of jobs; a narrow terminal does without some columns, so that names tell rows apart."""
    return render(_COLUMNS, [_cells(row, now_ns) for row in rows], width=width)
