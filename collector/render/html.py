"""HTML of stores, jobs and texts, for notebooks; it has no script, style sheet or link."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from ..numbers import count, counted, counted_steps, duration, percent, quantity
from ..summaries.jobs import JobRow
from ..summaries.top import short_device
from .jobs_text import framework, start_text, state

#: Characters that HTML cannot hold, lone surrogates included.
_FORBIDDEN: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
#: Maximum number of jobs and of op types that are shown.
JOBS_MAX, OPS_MAX = 20, 10
_JOB_TITLES: Final = ("id", "name", "host", "pid", "framework", "steps", "time/step", "traced", "state", "started")
_OP_TITLES: Final = ("op", "device", "time/step", "share", "calls/step", "line")
#: Titles of columns with numbers.
_NUMBERS: Final = frozenset({"pid", "steps", "time/step", "traced", "share", "calls/step"})


def preformatted(lines: Sequence[str]) -> str:
    """Return lines of text as they are; JupyterLab would wrap long ones."""
    text = "\n".join(lines)
    return f'<pre style="white-space: pre; overflow-x: auto">{_text(text)}</pre>'


def jobs_table(rows: Sequence[JobRow], now_ns: int) -> str:
    """Return a table of the last jobs, the newest first."""
    cells = [
        (
            *(row.id, row.name, row.host, str(row.pid or "-"), framework(row), count(row.steps)),
            *(duration(row.step_ns), count(row.traced), state(row), start_text(row, now_ns)),
        )
        for row in reversed(rows[-JOBS_MAX:])
    ]
    return _table(counted(len(rows), "job"), _JOB_TITLES, cells, len(rows) - len(cells))


def ops_table(jobs: Sequence[JobRow], ops: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of ``ops``, rows of the table `ops`, with the most time first."""
    total_ns = sum(op["time_ns"] for op in ops)
    cells = [
        (
            op["op"],
            ", ".join(map(short_device, op["devices"])),
            duration(op["time_ns"]),
            percent(op["time_ns"] / total_ns) if total_ns else "-",
            quantity(op["runs"]),
            op["line"],
        )
        for op in ops[:OPS_MAX]
    ]
    names = ", ".join(f"{job.id} {job.name}: {state(job)}, {counted_steps(job.steps, job.step_kind)}" for job in jobs)
    return _table(names, _OP_TITLES, cells, len(ops) - len(cells))


def _table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[str]], left_out: int) -> str:
    """Return a table; ``left_out``: number of further rows, which its last line mentions."""
    head = "".join(_cell("th", title, title) for title in titles)
    lines = ["".join(_cell("td", title, text) for title, text in zip(titles, cells, strict=True)) for cells in rows]
    if left_out:
        lines.append(f'<td colspan="{len(titles)}" style="text-align:left">and {count(left_out)} more</td>')
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{_text(caption)}</caption><tr>{head}</tr>{body}</table>"


def _cell(tag: str, title: str, text: str) -> str:
    side = "right" if title in _NUMBERS else "left"
    return f'<{tag} style="text-align:{side}">{_text(text)}</{tag}>'


def _text(text: str) -> str:
    return _FORBIDDEN.sub("?", escape(text))
