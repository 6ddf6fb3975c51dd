"""What stands above a view: which jobs and steps it is of, and what is the same in all of its rows."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from ..numbers import count, duration
from ..query.engine import Answer
from ..query.explanations import kinds_of
from ..store.reader import Job
from ..summaries.jobs import counts_of
from ..summaries.kinds import named
from ..text import clean

#: Jobs that are named.
_NAMED: Final = 3
#: No line above a table is wrapped to fewer characters.
_NARROWEST: Final = 40


def _job(job: Job) -> str:
    return f"{job.info.hex[:4]} {job.info.name}".strip()


def _jobs(jobs: Sequence[Job]) -> str:
    names = ", ".join(map(_job, jobs[:_NAMED]))
    return f"job{'s' * (len(jobs) > 1)} {names}" + (f" and {len(jobs) - _NAMED} more" if jobs[_NAMED:] else "")


def _steps(answer: Answer) -> str:
    """Return how many traced steps of which kind numbers are of, and of how many."""
    traces, kinds = answer.profile.traces if answer.profile else 0, kinds_of(answer)
    if not traces:
        return "the graph alone"
    if answer.options.step >= 0:
        return f"{kinds[0][0] if kinds else 'step'} {count(answer.options.step)}"
    several = f" ({', '.join(f'{number:,} {kind}' for kind, number in kinds)})" if kinds[1:] else ""
    kind = f"{kinds[0][0]} " if len(kinds) == 1 else ""
    there = sum(counts_of(job.info).get(name, 0) for job in answer.about.jobs for name, _ in kinds)
    return f"{count(traces)} traced {kind}step{'s' * (traces != 1)}{several}{f' of {count(there)}' * (there > traces)}"


def heading(answer: Answer) -> str:
    """Return which view it is, of which jobs and steps."""
    about = answer.about
    steps = f", of the steps {about.steps[0]}-{about.steps[1]}" if about.steps else ""
    where = f", on devices like '{about.device}'" if about.device else ""
    return f"{answer.view.name} view of {_jobs(about.jobs)}: {_steps(answer)}{steps}{where}"


def lines(answer: Answer, micros: float, same: Sequence[str], looked_at: int, width: int | None) -> Iterator[str]:
    """Yield the lines above a table.

    ``micros``: the time of all ops of a step; ``same``: what holds of all rows; ``looked_at``: of how many steps the spread is.
    """
    traces = answer.profile.traces if answer.profile else 0
    said = [f"{duration(micros * 1000)} of ops a step, all threads together"] if micros else []
    said = [", ".join([*said, *same])] if said or same else []
    if answer.profile and answer.profile.others:
        others = ", ".join(f"{number:,} {named(kind)}" for kind, number in answer.profile.others.items())
        said.append(f"traced besides: {others} (--kind)")
    if 1 < looked_at < traces:
        said.append(f"the spread is of {looked_at} steps")
    for text in (heading(answer), "; ".join(said)):
        yield from wrapped(clean(text), width)


def wrapped(text: str, width: int | None) -> list[str]:
    """Return a line around a table in lines of its width."""
    if width is None:
        return [text] if text else []
    return textwrap.wrap(text, max(width, _NARROWEST), subsequent_indent="  ", break_on_hyphens=False)
