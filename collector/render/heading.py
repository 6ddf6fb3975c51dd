"""What stands above a view: which jobs and steps it is of, and what is the same in all of its rows."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import count, duration
from ..text import clean

#: Jobs that are named.
_NAMED: Final = 3
#: No line above a table is wrapped to fewer characters.
_NARROWEST: Final = 40


class Subject(NamedTuple):
    """What a view is of: jobs by id and name, traced steps by kind, and the device and steps that were asked for.

    ``there``: how many steps of these kinds ran; ``others``: the traced steps of kinds that are left out.
    """

    view: str
    jobs: Sequence[str]
    traces: int
    step: int
    kinds: Sequence[tuple[str, int]]
    there: int
    others: Sequence[tuple[str, int]]
    steps: tuple[int, int] | None
    device: str | None


def _jobs(jobs: Sequence[str]) -> str:
    names = ", ".join(jobs[:_NAMED])
    return f"job{'s' * (len(jobs) > 1)} {names}" + (f" and {len(jobs) - _NAMED} more" if jobs[_NAMED:] else "")


def _steps(subject: Subject) -> str:
    """Return how many traced steps of which kind numbers are of, and of how many."""
    traces, kinds = subject.traces, subject.kinds
    if not traces:
        return "the graph alone"
    if subject.step >= 0:
        return f"{kinds[0][0] if kinds else 'step'} {count(subject.step)}"
    several = f" ({', '.join(f'{number:,} {kind}' for kind, number in kinds)})" if kinds[1:] else ""
    kind = f"{kinds[0][0]} " if len(kinds) == 1 else ""
    of = f" of {count(subject.there)}" * (subject.there > traces)
    return f"{count(traces)} traced {kind}step{'s' * (traces != 1)}{several}{of}"


def heading(subject: Subject) -> str:
    """Return which view it is, of which jobs and steps."""
    steps = f", of the steps {subject.steps[0]}-{subject.steps[1]}" if subject.steps else ""
    where = f", on devices like '{subject.device}'" if subject.device else ""
    return f"{subject.view} view of {_jobs(subject.jobs)}: {_steps(subject)}{steps}{where}"


def lines(subject: Subject, micros: float, same: Sequence[str], looked_at: int, width: int | None) -> Iterator[str]:
    """Yield the lines above a table.

    ``micros``: the time of all ops of a step; ``same``: what holds of all rows; ``looked_at``: of how many steps the spread is.
    """
    parts = [f"{duration(micros * 1000)} of ops a step, all threads together"] if micros else []
    parts = [", ".join([*parts, *same])] if parts or same else []
    if subject.others:
        others = ", ".join(f"{number:,} {kind}" for kind, number in subject.others)
        parts.append(f"traced besides: {others} (--kind)")
    if 1 < looked_at < subject.traces:
        parts.append(f"the spread is of {looked_at} steps")
    for text in (heading(subject), "; ".join(parts)):
        yield from wrapped(clean(text), width)


def wrapped(text: str, width: int | None) -> list[str]:
    """Return a line around a table in lines of its width."""
    if width is None:
        return [text] if text else []
    return textwrap.wrap(text, max(width, _NARROWEST), subsequent_indent="  ", break_on_hyphens=False)
