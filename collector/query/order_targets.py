"""The jobs and the steps that an order is for.

Workers of a distributed job trace the same steps.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from ...formats import orders
from ...formats.orders import OrderAnswer
from ..errors import NoSuchJobError, UsageError
from ..store.catalog import STALE, JobInfo
from ..store.columns import row_tuples
from ..store.protocols import JobReader, StoreReader
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name, main_kind_of, span_kind, step_kind_of
from ..summaries.order_results import JobAnswers, OrderOps, OrderTarget
from ..summaries.step_records import TimedSteps
from .job_selection import ids_of, matches_any, may_run
from .kind_selection import COLUMNS, traces_of_job
from .node_times import rank_ops
from .recorded_steps import main_kind, steps_of_kind
from .workers import is_evaluator, members_of

#: Time from the last stored step to the first agreed one (seconds). Steps are stored up to three
#: seconds after their end. The order must reach all workers before the first agreed step.
AHEAD_S: Final = 6.0
#: The pace is computed from this number of the latest timed entries.
_PACE_STEPS: Final = 50


def jobs_for_order(
    store: StoreReader,
    selectors: Sequence[str],
    all_jobs: bool = False,
    hosts: Sequence[str] = (),
    names: Sequence[str] = (),
    pids: Sequence[int] = (),
) -> list[OrderTarget]:
    """Return the jobs that ``selectors`` name, or without selectors all running jobs.

    ``hosts`` and ``names`` (patterns, case is ignored) and ``pids`` limit these jobs, unless they
    are empty. UsageError if nothing selects jobs, or if both ``all_jobs`` and ``selectors`` are
    given. NoSuchJobError if no job is left.
    """
    if not (selectors or all_jobs or hosts or names or pids):
        raise UsageError("no JOB given: the start of a job's id, its name, or `last`; or --all, --host, --name, --pid")
    if selectors and all_jobs:
        raise UsageError("--all and a JOB exclude each other")
    if selectors:
        targets = list({job.info.uid: job for job in map(store.job, selectors)}.values())
    else:
        targets = [job for job in store.jobs() if may_run(job.info)]
    targets = [job for job in targets if matches_any(job.info.host, hosts) and matches_any(job.info.name, names)]
    targets = [job for job in targets if not pids or job.info.pid in pids]
    if not targets:
        raise NoSuchJobError("no such job is running: `tfprof jobs` lists all jobs")
    ids = ids_of(targets)
    return [OrderTarget(job.info, ids[job.info.hex], _may_obey(job.info)) for job in targets]


def workers_for_order(store: StoreReader, group: str) -> list[OrderTarget]:
    """Return the workers of a distributed job that may be running.

    ``group``: the name of the distributed job, or one of its jobs. UsageError ``no-group`` and
    NoSuchJobError as for `workers.members_of`; the latter also if no worker is left.
    """
    name, members = members_of(store, group)
    ids = ids_of(members)
    targets = [
        OrderTarget(job.info, ids[job.info.hex], is_running) for job in members if (is_running := _may_obey(job.info))
    ]
    if not targets:
        raise NoSuchJobError(f"no worker of {name} is running: `tfprof jobs` lists all jobs")
    return targets


def _may_obey(info: JobInfo) -> bool:
    """Return whether a job may still be running; of a node's job, only its agent knows."""
    return may_run(info) or (info.state == STALE and info.node is not None)


def ops_of_order(job: JobReader, answer: OrderAnswer) -> OrderOps | None:
    """Return the ops of the steps that an order traced.

    These are the steps that began between the times of ``answer``. Only steps of their main kind
    count. None if no op of such a step is stored.
    """
    table = job.table("traces", ("kind", "key", "step", "start_ns", "duration_ns"))
    rows = [
        (step_kind_of(kind, key), step, duration_ns)
        for kind, key, step, start_ns, duration_ns in row_tuples(table)
        if answer.from_ns <= start_ns <= answer.to_ns
    ]
    kind = _main_kind(job, rows)
    if kind is None:
        return None
    steps = [step for kind_of_step, step, _ in rows if kind_of_step == kind]
    first, last = min(steps), max(steps)
    ranking = rank_ops(job, (first, last), (kind,))
    return (
        None
        if ranking is None or not ranking.ops
        else OrderOps(kind_name(kind, functions_of(job.info)), first, last, ranking.profile.trace_count, ranking.ops)
    )


def _main_kind(job: JobReader, traced: Iterable[tuple[int, int, int]]) -> int | None:
    """Return the main kind among traced steps (kind, step, ns); of functions, as in the views."""
    times, span_times = Counter[int](), Counter[int]()
    for kind, _, duration_ns in traced:
        times[kind] += duration_ns
        span_times[span_kind(kind)] += duration_ns
    main = main_kind_of(span_times, span_times)
    kinds = [kind for kind in times if span_kind(kind) == main]
    shown = traces_of_job(job, COLUMNS)[1]
    return next((kind for kind in kinds if kind in shown), max(kinds, key=times.__getitem__, default=None))


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
        """Return the workers that apply the order from another step on."""
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
    starts = pairwise(group.measured_start for group in steps[-_PACE_STEPS:])
    times_ns = [(end.ns - start.ns) / (end.step - start.step) for start, end in starts if end.step > start.step]
    return Progress(steps[-1].last, statistics.median(times_ns)) if times_ns else None


def _progress_of(job: JobReader) -> Progress | None:
    spans = job.table("spans")
    kind = None if is_evaluator(job.info) else main_kind(job, spans)
    return None if kind is None else progress_in(steps_of_kind(spans, kind, functions_of(job.info)).steps)
