"""Advice about jobs: gathers the evidence of each and asks the checkers."""

from collections.abc import Collection
from typing import NamedTuple

from ..advice.report import Advice
from ..advice.table import advise as ask
from ..errors import UsageError
from ..store.reader import Job
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
