"""Reads the workers of a distributed job from a store."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ...formats.layout import SECOND_NS
from ..errors import UsageError
from ..store.catalog import IMPORTED, JobInfo, integer_of
from ..store.columns import pc
from ..store.protocols import JobReader, StoreReader
from ..summaries.jobs import functions_of
from ..summaries.op_classes import WAITING
from ..summaries.parts import Breakdown
from ..summaries.steps import rows_of_kinds
from ..summaries.workers import Comparison, Moments, WorkerSteps, compare
from .breakdown import main_breakdown
from .job_selection import ids_of
from .recorded_steps import main_kind, steps_of_kind

#: Beginnings of names in a cluster of TF_CONFIG: of workers, and of what evaluates beside them.
_WORKER: Final = "worker:"
_EVALUATOR: Final = "evaluator:"
#: After this time without data, a job that was never closed has ended.
_SILENCE_NS: Final = 60 * SECOND_NS
#: Executions of these classes wait for other workers.
_FOR_OTHERS = ("collectives", "send and receive")


class Worker(NamedTuple):
    """A worker: its job's short id, its name in the group, and its figures.

    ``breakdown``: None without timed steps. ``waits_ns``: None without traced steps.
    """

    job: JobReader
    id: str
    name: str
    breakdown: Breakdown | None
    waits_ns: float | None
    comparison: Comparison

    @property
    def period_ns(self) -> float:
        """Mean time from step to step, 0 without timed steps."""
        return self.breakdown.period_ns if self.breakdown else 0.0


class Group(NamedTuple):
    """The workers of a distributed job, the one that is waited for first, or else the slowest.

    ``source``: what the order is from (`summaries.workers`). ``coordinator``: the id of the job
    that dispatches the steps of the workers, '' if they run their own.
    """

    name: str
    source: str
    workers: tuple[Worker, ...]
    coordinator: str = ""


def group_of(store: StoreReader, selector: str) -> Group:
    """Return the workers of the group ``selector``, compared; errors as for `members_of`."""
    name, members = members_of(store, selector)
    ids = ids_of(members)
    read = [job.on_one_snapshot(_read) for job in members]
    dispatched = _dispatched(members, read)
    read = [dispatched.get(place, of_member) for place, of_member in enumerate(read)]
    source, comparisons = compare([steps for steps, _ in read])
    workers = [
        Worker(job, ids[job.info.hex], worker_name(job.info), parts, steps.waits_ns, comparison)
        for job, (steps, parts), comparison in zip(members, read, comparisons, strict=True)
    ]
    workers.sort(key=lambda worker: (-(worker.comparison.behind_ns or 0.0), -worker.period_ns, worker.name))
    coordinator = next((ids[members[place].info.hex] for place in dispatched if not read[place][0].has_steps), "")
    return Group(name, source, tuple(workers), coordinator)


def members_of(store: StoreReader, selector: str) -> tuple[str, list[JobReader]]:
    """Return the name and the jobs of a group; ``selector``: its name, or a job of it.

    Each run of a cluster makes a group of the same name; the group of the latest job is returned.
    Raises NoSuchJobError, and UsageError ``no-group`` for a job without one.
    """
    jobs = list(store.jobs())
    named = [job for job in jobs if group_name(job.info) == selector]
    chosen = max(named, key=lambda job: job.info.opened_ns).info if named else store.job(selector).info
    name = group_name(chosen)
    if not name:
        text = (
            "it was imported, and its files name no cluster; `tfprof diff A B` compares two hosts"
            if chosen.state == IMPORTED
            else "its environment had no TF_CONFIG with a cluster, and no variables of Slurm, MPI, torchrun or Horovod "
            "when it started"
        )
        raise UsageError(f"{chosen.name or chosen.hex} belongs to no distributed job: {text}", slug="no-group")
    return name, _of_one_run([job for job in jobs if group_name(job.info) == name], chosen)


def group_name(info: JobInfo) -> str:
    """Return the name of a job's group, '' without one."""
    name = info.identity.get("group")
    return name if isinstance(name, str) else ""


def worker_name(info: JobInfo) -> str:
    """Return the name of a job in its group: its task in TF_CONFIG, its rank, or its process."""
    tags, rank = info.identity.get("tags"), info.identity.get("rank")
    task = tags.get("tf_task") if isinstance(tags, dict) else None
    return str(task) if task else f"rank {rank}" if rank is not None else f"pid {info.identity.get('pid')}"


def is_evaluator(info: JobInfo) -> bool:
    """Return whether a job of a group evaluates checkpoints, at a pace of its own."""
    return worker_name(info).startswith(_EVALUATOR)


def _of_one_run(jobs: Iterable[JobReader], chosen: JobInfo) -> list[JobReader]:
    """Return those of ``jobs`` that ran at the same time as ``chosen``, the oldest first."""
    periods = {job.info.uid: (job, *_period(job)) for job in jobs}
    _, start, end = periods[chosen.uid]
    same = [job for job, first, last in periods.values() if first <= end and last >= start]
    return sorted(same, key=lambda job: job.info.opened_ns)


def _period(job: JobReader) -> tuple[int, int]:
    """Return when ``job`` was opened, and its end by the same clock.

    A job from another store was closed in this one when it was imported. A job whose host broke
    down is never closed.
    """
    info = job.info
    ended = integer_of(info.end, "t_ns")
    ends = info.closed_ns, info.opened_ns + ended - info.started_ns if ended else None
    known = list(filter(None, ends))
    return info.opened_ns, min(known) if known else job.last_write_ns() + _SILENCE_NS


#: What is known about the steps of a worker, and their parts.
_Read = tuple[WorkerSteps, Breakdown | None]


def _dispatched(members: Sequence[JobReader], read: Sequence[_Read]) -> dict[int, _Read]:
    """Return what replaces ``read``, by place, if a coordinator dispatches the steps of workers.

    The coordinator of TensorFlow 2 has a thread for each worker, in the order of their numbers. The
    workers run no steps of their own. Without as many threads as workers, the result is empty.
    """
    stepping = [place for place, (steps, _) in enumerate(read) if steps.has_steps]
    workers = sorted(
        (int(number), place)
        for place, job in enumerate(members)
        if place not in stepping and (number := worker_name(job.info).removeprefix(_WORKER)).isdecimal()
    )
    if len(stepping) != 1 or len(workers) < 2:
        return {}
    by_thread = members[stepping[0]].on_one_snapshot(_by_thread)
    if len(by_thread) != len(workers):
        return {}
    by_place = dict(zip((place for _, place in workers), by_thread, strict=True))
    return {**by_place, stepping[0]: (WorkerSteps(read[stepping[0]][0].host, {}, None), None)}


def _by_thread(job: JobReader) -> list[_Read]:
    """Return the function calls of each thread of ``job`` that calls functions, by its number.

    Those of the main thread are left out: checkpoints call functions there.
    """
    calls = rows_of_kinds(job.table("spans"), (layout.FUNCTION,))
    calls = calls.filter(pc.not_equal(calls["thread"], pa.scalar(integer_of(job.info.identity, "pid"), pa.uint32())))
    threads: list[Any] = sorted(pc.unique(calls["thread"]).to_pylist())
    parts = [main_breakdown(job, calls.filter(pc.equal(calls["thread"], thread))) for thread in threads]
    return [(WorkerSteps(job.info.host, {}, None, part.period_ns if part else None), part) for part in parts]


def _read(job: JobReader) -> _Read:
    spans = job.table("spans")
    kind = None if is_evaluator(job.info) else main_kind(job, spans)
    if kind is None:
        return WorkerSteps(job.info.host, {}, None), None
    steps = {
        group.ordinal: Moments(group.start_ns, group.start_ns + group.total_ns)
        for group in steps_of_kind(spans, kind, functions_of(job.info)).steps
        if group.steps == 1 and group.is_normal
    }
    parts = main_breakdown(job, spans)
    waits = parts.detail_ns(WAITING) if parts and parts.traced else None
    waits_ns = None if waits is None else sum(waits.get(name, 0.0) for name in _FOR_OTHERS)
    return WorkerSteps(job.info.host, steps, waits_ns, parts.period_ns if parts else None), parts
