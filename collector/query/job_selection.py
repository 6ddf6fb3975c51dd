"""Selects jobs of a store by selector, host and process, and tells which of them run."""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from ...commands.proc_stat import is_alive
from ..errors import NoSuchJobError, TfprofError, UsageError
from ..store.catalog import RUNNING, STALE, JobInfo
from ..store.protocols import JobReader, StoreReader
from ..store.selectors import select, short_ids
from ..summaries.events import EventSummary, events
from ..tfviews.parity import DEFAULT, Parity

#: Maximum number of hosts that an error lists.
_NAMES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Selection:
    """What a view covers: jobs, traced steps, a device and kinds of steps.

    ``steps`` are the numbers of the first and the last step, None for all. ``device`` is a pattern,
    None for all devices. ``kinds`` None means the main kind of the jobs, or all kinds if all steps
    are selected and ``parity`` does not separate kinds. ``parity``: how closely the view follows
    the TF profiler. ``since_ns``: only steps that began then or later (real time), 0 for all.
    """

    jobs: tuple[JobReader, ...]
    steps: tuple[int, int] | None = None
    device: str | None = None
    parity: Parity = DEFAULT
    kinds: tuple[int, ...] | None = None
    since_ns: int = 0


def ids_of(jobs: Sequence[JobReader]) -> dict[str, str]:
    """Return the shortest unique ids of ``jobs``, which are of one store, by uid in hexadecimal."""
    hex_uids = {job.info.hex for job in jobs}.union(*(job.store_uids() for job in jobs[:1]))
    return short_ids(list(hex_uids))


def matches_any(text: str, patterns: Collection[str]) -> bool:
    """Return whether ``text`` matches any of ``patterns``, or there are none; case is ignored."""
    return not patterns or any(fnmatchcase(text.lower(), pattern.lower()) for pattern in patterns)


def _first_names(texts: Iterable[str]) -> str:
    names = sorted(set(texts))
    return " ".join(names[:_NAMES_MAX]) + (" …" if len(names) > _NAMES_MAX else "") if names else "none"


def _jobs_of(jobs: Sequence[JobReader], hosts: Sequence[str], pids: Sequence[int]) -> list[JobReader]:
    """Return the jobs of ``hosts`` and ``pids``; an empty list selects all."""
    selected = list(jobs)
    if hosts:
        selected = [job for job in selected if matches_any(job.info.host, hosts)]
        if not selected:
            host_names = _first_names(job.info.host or "unknown" for job in jobs)
            raise NoSuchJobError(f"no job of host {' '.join(hosts)}: there are jobs of {host_names}")
    if pids:
        selected = [job for job in selected if job.info.pid in pids]
        if not selected:
            raise NoSuchJobError(f"no job of pid {' '.join(map(str, pids))}: `tfprof jobs` lists them")
    return selected


def check_criteria(selectors: Sequence[str], hosts: Sequence[str] = (), pids: Sequence[int] = ()) -> None:
    """Raise UsageError unless something selects jobs."""
    if not (selectors or hosts or pids):
        message = "no JOB given: name jobs by the start of an id, by a name, or as `last`; or give --host or --pid"
        raise UsageError(f"{message} (`tfprof jobs` lists them)")


def choose(
    store: StoreReader, selectors: Sequence[str], hosts: Sequence[str] = (), pids: Sequence[int] = ()
) -> list[JobReader]:
    """Return the jobs that ``selectors`` name, each once.

    Without selectors, returns all jobs of ``hosts`` and ``pids``. Selectors apply only to jobs of
    ``hosts`` (names; `*` and `?` are wildcards) and ``pids``. Raises NoSuchJobError if there is no
    such job, or if a selector matches no job or several. Raises UsageError if nothing is given.
    """
    check_criteria(selectors, hosts, pids)
    if not hosts and not pids:
        jobs = [store.job(selector) for selector in selectors]
    else:
        jobs = _jobs_of(store.jobs(), hosts, pids)
        by_uid = {job.info.uid: job for job in jobs}
        if selectors:
            infos = [job.info for job in jobs]
            jobs = [by_uid[select(infos, selector).uid] for selector in selectors]
    return list({job.info.uid: job for job in jobs}.values())


def local_jobs(store: StoreReader, host: str = "") -> dict[int, JobReader]:
    """Return the running jobs of ``host`` in ``store`` by pid; an empty ``host`` is this one."""
    host = host or os.uname().nodename
    jobs = [job for job in store.jobs() if job.info.state == RUNNING and job.info.host == host]
    return {job.info.pid: job for job in jobs}


def incompleteness(job: JobReader) -> list[EventSummary]:
    """Return the events that say what cannot be recorded of a job; none if it cannot be read."""
    try:
        return [event for event in events(job.table("events")) if event.is_incompleteness]
    except TfprofError:
        return []


def may_run(info: JobInfo) -> bool:
    """Return whether a job may still be running.

    The collector of a stale job has ended. If the job's process is alive, its agent starts another
    collector.
    """
    return info.state == RUNNING or (info.state == STALE and is_alive(info.pid, info.identity.get("started")))
