"""Agrees on steps that all workers of a distributed job can trace."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ...formats import orders
from ..store.protocols import JobReader, StoreReader
from ..summaries.jobs import functions_of
from ..summaries.order_results import JobAnswers, OrderTarget
from ..summaries.step_records import TimedSteps, periods
from .timed_steps import main_kind, steps_of_kind

#: Time from the last stored step to the first agreed one (seconds). Steps are stored up to three
#: seconds after their end. The order must reach all workers before the first agreed step.
AHEAD_S: Final = 6.0
#: The pace is computed from this number of the latest timed entries.
_PACE_STEPS: Final = 50


class Progress(NamedTuple):
    """How far a worker is: the number of its last stored step, and its time from step to step."""

    last: int
    period_ns: float


class Agreement(NamedTuple):
    """The number of the first step that all ``workers`` can trace; the other jobs take no steps."""

    first: int
    workers: tuple[OrderTarget, ...]
    others: tuple[OrderTarget, ...]

    def passed_by(self, given: Iterable[JobAnswers]) -> list[OrderTarget]:
        """Return the workers that apply the order, but trace another step first."""
        return [
            job_answers.job
            for job_answers in given
            if job_answers.answers[0].state == orders.OBEYED and job_answers.answers[0].step != self.first
        ]


def agree(store: StoreReader, jobs: Sequence[OrderTarget]) -> Agreement | None:
    """Return the agreement of ``jobs``, None if none of them has timed steps.

    Steps of one number belong together, as in `tfprof workers`.
    """
    progress = {job.id: store.job(job.info.hex).on_one_snapshot(_progress_of) for job in jobs}
    known = [known for known in progress.values() if known is not None]
    if not known:
        return None
    workers = tuple(job for job in jobs if progress[job.id] is not None)
    return Agreement(first_common(known), workers, tuple(job for job in jobs if progress[job.id] is None))


def first_common(workers: Iterable[Progress]) -> int:
    """Return the number of a step that every worker begins AHEAD_S or more after its last one."""
    return max(worker.last + math.ceil(AHEAD_S * 1e9 / max(worker.period_ns, 1.0)) for worker in workers) + 1


def progress_in(steps: Sequence[TimedSteps]) -> Progress | None:
    """Return the progress in the timed ``steps`` of a job, None if their period is unknown."""
    times_ns = [period.ns for period in periods(steps[-_PACE_STEPS:])]
    return Progress(steps[-1].last, statistics.median(times_ns)) if times_ns else None


def _progress_of(job: JobReader) -> Progress | None:
    spans = job.table("spans")
    kind = main_kind(job, spans)
    return None if kind is None else progress_in(steps_of_kind(spans, kind, functions_of(job.info)).steps)
