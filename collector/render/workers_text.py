"""The workers of a distributed job as text: who is waited for, a table, and what to type next."""

from collections.abc import Iterator
from typing import Final

from ..numbers import count, counted, duration
from ..query.workers import Group, Worker
from ..summaries.workers import NOTHING, PACE, Clock
from . import colors
from .table import Column, render
from .wrapping import wrapped

_COLUMNS: Final = (
    Column("WORKER", min_width=8, preferred_width=20),
    Column("JOB"),
    Column("HOST", min_width=6, preferred_width=20, drop_priority=4),
    Column("STEPS", right=True, drop_priority=3),
    Column("STEP TO STEP", right=True),
    Column("STEP", right=True, drop_priority=2),
    Column("WAITS", right=True),
    Column("WAITED FOR", right=True),
    Column("STARTS LATE", right=True),
    Column("LAST", right=True),
    Column("CLOCK", right=True, drop_priority=1),
)
#: Share of the time from step to step from which a worker is called waited for.
_SHARE_MIN: Final = 0.05


def lines(group: Group, width: int | None) -> Iterator[str]:
    """Yield the workers of ``group``, at most ``width`` wide if possible."""
    yield from (colors.paint("verdict", text) for text in wrapped(f"Verdict: {_verdict(group)}.", width))
    yield ""
    yield from render(_COLUMNS, list(map(_row, group.workers)), width=width)
    yield ""
    yield f"group {group.name}: {counted(len(group.workers), 'worker')}, compared by: {group.source}"
    if any(worker.comparison.clock is None for worker in group.workers):
        yield from wrapped("note: clocks of other hosts are unknown: no traced collectives align them", width)
    first = group.coordinator or group.workers[0].id
    yield f"next: tfprof breakdown {first} · tfprof spans {first} · tfprof advise {first}"


def _verdict(group: Group) -> str:
    first = group.workers[0]
    behind_ns = first.comparison.behind_ns or 0.0
    stepping = [worker for worker in group.workers if worker.period_ns]
    if len(group.workers) == 1:
        return "only one worker of the group was profiled"
    if len(stepping) == 1:
        return f"only {first.name} runs steps of its own, so there is nothing to compare"
    if group.source == PACE:
        return _pace(first, min(stepping, key=lambda worker: worker.period_ns))
    if group.source == NOTHING:
        return "unknown: no step was traced in all workers, and none was timed one by one in all of them"
    if first.breakdown is None or behind_ns < _SHARE_MIN * first.breakdown.period_ns:
        return "no worker is waited for"
    return f"the others wait {duration(behind_ns)} in each step for {first.name}"


def _pace(slowest: Worker, fastest: Worker) -> str:
    text = "the workers do not wait for each other"
    if slowest.period_ns < (1 + _SHARE_MIN) * fastest.period_ns:
        return f"{text}, and are equally fast"
    return (
        f"{text}; {slowest.name} is the slowest, {duration(slowest.period_ns)} from step to step, "
        f"{slowest.period_ns / fastest.period_ns:.1f} times as long as {fastest.name}"
    )


def _row(worker: Worker) -> list[str]:
    parts, compared = worker.breakdown, worker.comparison
    return [
        worker.name,
        worker.id,
        worker.job.info.host,
        count(parts.all_steps if parts else 0),
        duration(parts.period_ns if parts else None),
        duration(parts.step_ns if parts else None),
        duration(worker.waits_ns),
        duration(compared.behind_ns),
        duration(compared.late_ns),
        f"{count(compared.last)} of {count(compared.common)}",
        _clock(compared.clock),
    ]


def _clock(clock: Clock | None) -> str:
    """Return the error of a clock; that of the host of the reference has none."""
    if clock is None:
        return "unknown"
    return f"± {duration(clock.error_ns)}" if clock.offset_ns or clock.error_ns else "one host"
