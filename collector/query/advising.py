"""Advice about jobs: gathers the evidence of each job and runs the checkers."""

from collections.abc import Collection
from typing import NamedTuple

from ..advice.evidence import Evidence
from ..advice.report import Advice
from ..advice.table import advise as run_checkers
from ..advice.verdict import findings, verdict
from ..errors import UsageError
from ..store.protocols import JobReader
from ..tfviews.parity import DEFAULT, Parity
from .evidence import gather
from .job_selection import Selection


class JobAdvice(NamedTuple):
    """The advice about one job, and what it is based on."""

    job: JobReader
    advice: list[Advice]
    evidence: Evidence


def advise(selection: Selection, names: Collection[str] | None = None) -> list[JobAdvice]:
    """Return the advice of the checkers ``names`` (None: all) about each job.

    UsageError if ``selection`` is limited to some steps or a device.
    """
    if selection.steps is not None or selection.device is not None or selection.since_ns:
        raise UsageError("advice is about whole jobs: omit steps, time and device")
    return [_job_advice(job, selection.parity, names) for job in selection.jobs]


def _job_advice(job: JobReader, parity: Parity, names: Collection[str] | None) -> JobAdvice:
    evidence = gather(job, parity)
    return JobAdvice(job, run_checkers(evidence, names), evidence)


def first_advice(job: JobReader) -> str | None:
    """Return the verdict of the advice about ``job``, None if there is nothing to act on."""
    advice = _job_advice(job, DEFAULT, None).advice
    first = next(iter(findings(advice)), None)
    return verdict(advice) if first is not None and first.report.remedy else None
