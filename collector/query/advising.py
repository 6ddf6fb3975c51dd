"""Advice about jobs: what is known of each is gathered, its checkers are asked, and their answers told."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ..advice.report import Advice
from ..advice.table import advise as ask
from ..errors import UsageError
from ..render.advice_text import lines
from ..store.reader import Job
from ..text import clean
from ..tfviews.parity import Parity
from .engine import About
from .evidence import gather


class JobAdvice(NamedTuple):
    """What the checkers say of one job; `has_steps`: whether any of its steps was traced."""

    job: Job
    advice: list[Advice]
    has_steps: bool

    @property
    def says_something(self) -> bool:
        """Whether any checker found anything."""
        return any(reports for _, reports in self.advice)


def advise(about: About, names: Collection[str] | None = None) -> list[JobAdvice]:
    """Return what the checkers called ``names`` (None: all) say of each job; UsageError where not whole jobs are asked about."""
    if about.steps is not None or about.device is not None:
        raise UsageError("advice is about whole jobs: leave steps and device away")
    return [_of_job(job, about.parity, names) for job in about.jobs]


def _of_job(job: Job, parity: Parity, names: Collection[str] | None) -> JobAdvice:
    evidence = gather(job, parity)
    return JobAdvice(job, ask(evidence, names), evidence.has_steps)


def told(found: Sequence[JobAdvice], parity: Parity, width: int | None = None) -> Iterator[str]:
    """Yield the advice as text, no line wider than ``width``, each job's name above it where there are several."""
    for at, one in enumerate(found):
        if len(found) > 1:
            yield from [""] if at or parity.exact else []
            yield f"job {one.job.info.hex[:4]} {clean(one.job.info.name)}"
        yield from lines(one.advice, width, exact=parity.exact)
