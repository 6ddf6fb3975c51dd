"""Reads the step times and the events of a job."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..store.protocols import JobReader
from ..summaries.events import EventSummary, events
from ..summaries.jobs import counts_of, functions_of
from ..summaries.steps import Steps
from ..summaries.steps import steps as summarize
from .explanations import missed_steps_note


@dataclass(frozen=True, slots=True)
class JobSteps:
    """The steps and the events of a job.

    ``counts``: number of its spans of each kind, including those without an entry. ``missed``: how
    many selected steps could not be traced, and why; None if there are none.
    """

    job: JobReader
    steps: Steps
    counts: Mapping[str, int]
    events: tuple[EventSummary, ...]
    missed: str | None


def job_steps(job: JobReader, entries_max: int | None) -> JobSteps:
    """Return the steps of ``job`` and its last ``entries_max`` entries, None for all.

    All parts are read from one snapshot of the job.
    """
    return job.on_one_snapshot(lambda snapshot: _job_steps(snapshot, entries_max))


def _job_steps(job: JobReader, entries_max: int | None) -> JobSteps:
    return JobSteps(
        job,
        summarize(job.table("spans"), entries_max, functions_of(job.info)),
        counts_of(job.info),
        events(job.table("events")),
        missed_steps_note(job),
    )
