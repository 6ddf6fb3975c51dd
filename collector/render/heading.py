"""The heading of a view: its jobs and steps, and facts that hold for all rows."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import count, counted, date_and_time, duration
from ..summaries.steps import range_text
from ..tfviews.options import STEP
from . import colors
from .wrapping import wrapped

#: Maximum number of jobs that are named.
_NAMES_MAX: Final = 3


class Subject(NamedTuple):
    """The subject of a view: jobs by id and name, traced steps by kind, selected device and steps.

    ``all_steps``: number of steps of these kinds that ran; ``estimated``: whether this number is an
    estimate. ``other_kinds``: number of traced steps of each kind that is left out. ``by``: what op
    types are taken apart by, empty for none.
    """

    view: str
    jobs: Sequence[str]
    trace_count: int
    step: int
    kinds: Sequence[tuple[str, int]]
    all_steps: int
    estimated: bool
    other_kinds: Sequence[tuple[str, int]]
    steps: tuple[int, int] | None
    device: str | None
    since_ns: int = 0
    by: str = ""


def _jobs(jobs: Sequence[str]) -> str:
    names = ", ".join(jobs[:_NAMES_MAX])
    return f"job{'s' * (len(jobs) > 1)} {names}" + (f" and {len(jobs) - _NAMES_MAX} more" if jobs[_NAMES_MAX:] else "")


def _steps(subject: Subject) -> str:
    """Return the number and kind of the traced steps, and the number of all steps of that kind."""
    trace_count, kinds = subject.trace_count, subject.kinds
    if not trace_count:
        return "the graph alone"
    if subject.step >= 0:
        return f"{kinds[0][0] if kinds else 'step'} {count(subject.step)}"
    by_kind = f" ({', '.join(f'{number:,} {kind}' for kind, number in kinds)})" if kinds[1:] else ""
    kind = f"{kinds[0][0]} " if len(kinds) == 1 else ""
    about = "about " * subject.estimated
    of_all = f" of {about}{count(subject.all_steps)}" * (subject.all_steps > trace_count)
    return f"{counted(trace_count, f'traced {kind}step')}{by_kind}{of_all}"


def heading(subject: Subject) -> str:
    """Return the name of the view, its jobs and steps."""
    steps = f", of the steps {range_text(*subject.steps)}" if subject.steps else ""
    where = f", on devices like '{subject.device}'" if subject.device else ""
    since = f", since {date_and_time(subject.since_ns)}" if subject.since_ns else ""
    by = f" by {subject.by}" * bool(subject.by)
    return f"{subject.view} view of {_jobs(subject.jobs)}{by}: {_steps(subject)}{steps}{since}{where}"


def lines(subject: Subject, ns: float, facts: Sequence[str], spread_steps: int, width: int | None) -> Iterator[str]:
    """Yield the lines above a table.

    ``ns``: time of all ops of a step; ``facts``: facts that hold for all rows;
    ``spread_steps``: number of steps in the spread.
    """
    parts = [f"{duration(ns)} of ops a step, all threads together"] if ns else []
    parts = [", ".join([*parts, *facts])] if parts or facts else []
    if subject.other_kinds:
        others = ", ".join(f"{number:,} {kind}" for kind, number in subject.other_kinds)
        parts.append(f"also traced: {others} (--kind)")
    if 1 < spread_steps < subject.trace_count:
        parts.append(f"the spread covers {spread_steps} steps" + ", and so do the rows" * (subject.by == STEP))
    yield from (colors.paint("title", text) for text in wrapped(heading(subject), width))
    yield from wrapped("; ".join(parts), width)
