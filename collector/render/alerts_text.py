"""Alerts as text: a block for each, with its time, job, sentence and changed ops."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..alerts.alert import SLOWER
from ..numbers import date_and_time, duration
from ..query.alerts import JobAlert
from ..summaries.top import OpChange
from .wrapping import wrapped

_INDENT: Final = "  "
_WIDTH: Final = 100


def lines(job_alerts: Sequence[JobAlert], ids: Mapping[str, str], width: int | None) -> Iterator[str]:
    """Yield the lines of all alerts, wrapped at ``width``; None: at _WIDTH.

    ``ids``: uid -> shortest unique start of it.
    """
    for job_alert in job_alerts:
        info, alert = job_alert.job.info, job_alert.alert
        host = f" on {info.host}" if info.host else ""
        yield f"{date_and_time(alert.found_ns)}  {f'{info.name} {ids[info.hex]}{host}'.strip()}"
        yield from _wrapped(f"{job_alert.text} [{alert.slug}]", width)
        for op in job_alert.ops:
            yield from _wrapped(_op_text(op), width)
        if note := _note(job_alert):
            yield from _wrapped(note, width)


def _note(job_alert: JobAlert) -> str:
    if job_alert.alert.slug != SLOWER or job_alert.ops:
        return ""
    if not job_alert.traced_since:
        return "No step was traced since the change, so the slower ops are unknown."
    if not job_alert.traced_before:
        return "No step was traced before the change, so the slower ops are unknown."
    return "The ops of traced steps are not slower: the time is spent between ops, or outside of TensorFlow."


def _op_text(op: OpChange) -> str:
    where = f", line {op.line}" if op.line else ""
    before = f"before {duration(op.before_ns)}" if op.before_ns else "did not run before"
    return f"{op.op} on {op.device}: {duration(op.now_ns)} a step, {before}{where}"


def _wrapped(text: str, width: int | None) -> list[str]:
    return wrapped(text, width or _WIDTH, _INDENT * 2, _INDENT)
