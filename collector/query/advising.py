"""Advice about jobs: gathers the evidence of each job and runs the checkers."""

from collections.abc import Collection
from typing import NamedTuple

from ..advice.report import Advice
from ..advice.table import advise as run_checkers
from ..errors import UsageError
from ..store.protocols import JobReader
from ..tfviews.parity import Parity
from .engine import Selection
from .evidence import gather


class JobAdvice(NamedTuple):
    """The advice about one job; ``has_steps``: whether any of its steps was traced."""

    job: JobReader
    advice: list[Advice]
    has_steps: bool

    @property
    def has_findings(self) -> bool:
        """Whether any checker found anything."""
        return any(reports for _, reports in self.advice)


def advise(selection: Selection, names: Collection[str] | None = None) -> list[JobAdvice]:
    """Return the advice of the checkers ``names`` (None: all) about each job.

    UsageError if ``selection`` is limited to some steps or a device.
    """
    if selection.steps is not None or selection.device is not None:
        raise UsageError("advice is about whole jobs: omit steps and device")
    return [_job_advice(job, selection.parity, names) for job in selection.jobs]


def _job_advice(job: JobReader, parity: Parity, names: Collection[str] | None) -> JobAdvice:
    evidence = gather(job, parity)
    return JobAdvice(job, run_checkers(evidence, names), evidence.has_steps)
