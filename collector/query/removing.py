"""Removes jobs from a store that a collector may have open."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import StoreError
from ..store import catalog
from ..store.reader import LocalStore
from ..store.retention import remove, remove_hosts, samples_needed_from, size_on_disk
from .listing import JobFilter, ListedJob, listed_jobs
from .liveness import may_run


class Removable(NamedTuple):
    """A job that has ended, and its size in bytes."""

    listed_job: ListedJob
    size: int


def selected_jobs(store: LocalStore, selectors: Sequence[str], now_ns: int) -> list[Removable]:
    """Return the jobs that ``selectors`` name.

    StoreError ``job-running`` if one of them is running. NoSuchJobError unless each selector
    selects one job.
    """
    uids = {store.job(selector).info.uid for selector in selectors}
    jobs = [listed_job for listed_job in listed_jobs(store, now_ns) if listed_job.job.info.uid in uids]
    for listed_job in jobs:
        _check_not_running(catalog.job_folder(store.path, listed_job.job.info.uid), store)
    return [
        Removable(listed_job, size_on_disk(catalog.job_folder(store.path, listed_job.job.info.uid)))
        for listed_job in jobs
    ]


def ended_jobs(store: LocalStore, job_filter: JobFilter, before_ns: int, now_ns: int) -> list[Removable]:
    """Return the jobs that ``job_filter`` selects and that ended before ``before_ns`` (real time).

    Jobs that may still run are left out. A job whose end is unknown counts as ended at the last
    change of its data.
    """
    jobs = []
    for listed_job in listed_jobs(store, now_ns, job_filter):
        folder = catalog.job_folder(store.path, listed_job.job.info.uid)
        if not may_run(listed_job.job.info) and (listed_job.row.ended_ns or _written_ns(folder)) < before_ns:
            jobs.append(Removable(listed_job, size_on_disk(folder)))
    return jobs


def remove_jobs(store: LocalStore, jobs: Sequence[Removable]) -> None:
    """Remove ``jobs``; StoreError if that fails, or if one of them runs again.

    The samples of hosts without a job are removed, too; a running collector does this itself.
    """
    for removable in jobs:
        _check_not_running(catalog.job_folder(store.path, removable.listed_job.job.info.uid), store)
        remove(store.path, removable.listed_job.job.info.uid)
    needed_from = samples_needed_from(store.path) if jobs else None
    if needed_from is not None:
        remove_hosts(store.path, needed_from)


def _check_not_running(folder: Path, store: LocalStore) -> None:
    try:
        info = store.with_stale_state(catalog.load(folder))
    except FileNotFoundError:
        return
    if may_run(info):
        raise StoreError(f"job {info.hex} {info.name} is running: it can be removed when it has ended", "job-running")


def _written_ns(folder: Path) -> int:
    """Return the time of the last change of a file in ``folder``, 0 if there is none."""
    try:
        return max((path.lstat().st_mtime_ns for path in folder.iterdir()), default=0)
    except OSError:
        return 0
