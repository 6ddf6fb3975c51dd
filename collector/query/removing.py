"""Removes jobs from a store that a collector may have open."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..errors import StoreError
from ..store.protocols import StoreReader
from .listing import JobFilter, ListedJob, listed_jobs
from .liveness import may_run


class Removable(NamedTuple):
    """A job that has ended, and its size in bytes."""

    listed_job: ListedJob
    size: int


def selected_jobs(store: StoreReader, selectors: Sequence[str], now_ns: int) -> list[Removable]:
    """Return the jobs that ``selectors`` name.

    StoreError ``job-running`` if one of them is running. NoSuchJobError unless each selector
    selects one job.
    """
    uids = {store.job(selector).info.uid for selector in selectors}
    jobs = [listed_job for listed_job in listed_jobs(store, now_ns) if listed_job.job.info.uid in uids]
    for listed_job in jobs:
        _check_not_running(listed_job.job.info.uid, store)
    return [Removable(listed_job, listed_job.job.size()) for listed_job in jobs]


def ended_jobs(store: StoreReader, job_filter: JobFilter, before_ns: int, now_ns: int) -> list[Removable]:
    """Return the jobs that ``job_filter`` selects and that ended before ``before_ns`` (real time).

    Jobs that may still run are left out. If the end of a job is unknown, the last change of its
    data counts as its end.
    """
    jobs = []
    for listed_job in listed_jobs(store, now_ns, job_filter):
        job = listed_job.job
        if not may_run(job.info) and (listed_job.row.ended_ns or job.last_write_ns()) < before_ns:
            jobs.append(Removable(listed_job, job.size()))
    return jobs


def remove_jobs(store: StoreReader, jobs: Sequence[Removable], remove: Callable[[Iterable[int]], None]) -> None:
    """Remove ``jobs``; StoreError if that fails, or if one of them runs again.

    ``remove``: `StoreReader.remove`, or what has the same effect.
    The samples of hosts without a job are removed, too; a running collector does this itself.
    """

    def ended_uids() -> Iterator[int]:
        for removable in jobs:
            _check_not_running(removable.listed_job.job.info.uid, store)
            yield removable.listed_job.job.info.uid

    remove(ended_uids())


def _check_not_running(uid: int, store: StoreReader) -> None:
    info = store.current(uid)
    if info is not None and may_run(info):
        raise StoreError(f"job {info.hex} {info.name} is running: it can be removed when it has ended", "job-running")
