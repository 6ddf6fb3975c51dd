"""Selects the jobs of an order, and reads the ops of the steps that the order traced."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from ...formats.orders import OrderAnswer
from ..errors import NoSuchJobError, UsageError
from ..store.catalog import STALE, JobInfo
from ..store.protocols import JobReader, StoreReader
from ..store.selectors import short_ids
from ..summaries.kinds import main_kind_of
from ..summaries.order_results import OrderOps, OrderTarget
from .liveness import may_run
from .ranking import rank_ops
from .selection import host_of, ids_of
from .workers import members_of


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
    jobs = store.jobs()
    ids = short_ids([job.info.hex for job in jobs])
    if selectors:
        targets = list({job.info.uid: job for job in map(store.job, selectors)}.values())
    else:
        targets = [job for job in jobs if may_run(job.info)]
    targets = [job for job in targets if _matches(host_of(job), hosts) and _matches(job.info.name, names)]
    targets = [job for job in targets if not pids or job.info.identity.get("pid") in pids]
    if not targets:
        raise NoSuchJobError("no such job is running: `tfprof jobs` lists all jobs")
    return [OrderTarget(job.info, ids.get(job.info.hex, job.info.hex), _may_obey(job.info)) for job in targets]


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


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(text.lower(), pattern.lower()) for pattern in patterns)


def ops_of_order(job: JobReader, answer: OrderAnswer) -> OrderOps | None:
    """Return the ops of the steps that an order traced.

    These are the steps that began between the times of ``answer``. Only steps of their main kind
    count. None if no op of such a step is stored.
    """
    rows: list[Any] = job.table("traces", ("kind", "step", "start_ns", "duration_ns")).to_pylist()
    rows = [row for row in rows if answer.from_ns <= row["start_ns"] <= answer.to_ns]
    times: dict[int, int] = {}
    for row in rows:
        times[row["kind"]] = times.get(row["kind"], 0) + row["duration_ns"]
    kind = main_kind_of(times, times)
    if kind is None:
        return None
    steps = [row["step"] for row in rows if row["kind"] == kind]
    first, last = min(steps), max(steps)
    ranking = rank_ops(job, (first, last), (kind,))
    return (
        None
        if ranking is None or not ranking.ops
        else OrderOps(kind, first, last, ranking.profile.trace_count, ranking.ops)
    )
