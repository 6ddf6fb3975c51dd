"""Lists the jobs of a store, and removes ended ones, also if a collector has the store open."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from ..errors import DamagedJobError, NoSuchJobError, StoreError
from ..store import catalog
from ..store.protocols import JobReader, StoreReader
from ..store.selectors import matching, select, short_ids
from ..summaries.jobs import STARTING, UNKNOWN_USAGE, JobRow, Usage, job_rows, unreadable_row, usage
from ..summaries.kinds import KINDS_BY_NAME
from .job_selection import matches_any, may_run

#: States to select by; a job without a step yet is both starting and running.
STATES: Final = (
    STARTING,
    catalog.RUNNING,
    "exited",
    "killed",
    "ended",
    "detached",
    "lost",
    catalog.STALE,
    catalog.IMPORTED,
)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """A selection of jobs by state, name, host and start.

    A job is selected if it is in any of ``states``, its name matches any of ``names`` and its host
    any of ``hosts`` (patterns), any of ``selectors`` may mean it, and it started at ``since_ns``
    (real time) or later. An empty collection selects all.
    """

    states: Collection[str] = ()
    names: Collection[str] = ()
    since_ns: int = 0
    selectors: Collection[str] = ()
    hosts: Collection[str] = ()

    def matches(self, row: JobRow) -> bool:
        """Return whether the job of ``row`` is selected."""
        return (
            row.started_ns >= self.since_ns
            and (not self.states or row.state in self.states or (row.phase == STARTING and STARTING in self.states))
            and matches_any(row.name, self.names)
            and matches_any(row.host, self.hosts)
        )


ALL_JOBS: Final = JobFilter()


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A listed job.

    ``traced`` is the number of its stored traced steps of the main kind. If it or ``usage`` cannot
    be read, they are unknown. If a file is damaged, ``damage`` is the error, and the row has the
    state `damaged`.
    """

    job: JobReader
    row: JobRow
    usage: Usage
    tags: tuple[str, ...]
    traced: int | None
    damage: StoreError | None = None


class UnreadableJob(NamedTuple):
    """A job whose job file cannot be read: its row, in which all but the id is unknown, and why."""

    row: JobRow
    damage: StoreError


@dataclass(frozen=True, slots=True)
class JobListing:
    """Selected jobs of the store ``store``.

    ``unreadable``: jobs whose job file cannot be read. ``job_count``: number of all jobs whose job
    file can be read.
    """

    store: str
    jobs: list[ListedJob]
    unreadable: list[UnreadableJob]
    job_count: int

    @property
    def damage(self) -> list[StoreError]:
        """The errors of damaged jobs."""
        errors = [job.damage for job in self.jobs if job.damage is not None]
        return errors + [job.damage for job in self.unreadable]


def job_listing(store: StoreReader, now_ns: int, job_filter: JobFilter = ALL_JOBS) -> JobListing:
    """Return the jobs that ``job_filter`` selects, in the order in which they were opened.

    NoSuchJobError if a selector means no job.
    """
    jobs, errors = store.read()
    rows = job_rows([job.info for job in jobs], now_ns)
    unreadable = _unreadable_jobs(jobs, errors) if job_filter == ALL_JOBS else []
    return JobListing(store.address, list(_matching_jobs(jobs, rows, job_filter)), unreadable, len(jobs))


def _matching_jobs(jobs: Sequence[JobReader], rows: Sequence[JobRow], job_filter: JobFilter) -> Iterator[ListedJob]:
    infos = [job.info for job in jobs]
    meant = {info.uid for word in job_filter.selectors for info in matching(infos, word) or [select(infos, word)]}
    for job, row in zip(jobs, rows, strict=True):
        if job_filter.matches(row) and (job.info.uid in meant or not job_filter.selectors):
            yield _listed_job(job, row)


def _listed_job(job: JobReader, row: JobRow) -> ListedJob:
    try:
        bounds, traced = job.totals()
        return ListedJob(job, row, usage(bounds), all_tags(job), _number_of(traced, row.step_kind))
    except StoreError as error:
        return ListedJob(job, replace(row, state=catalog.DAMAGED), UNKNOWN_USAGE, all_tags(job), None, error)
    except NoSuchJobError:  # removed meanwhile
        return ListedJob(job, row, UNKNOWN_USAGE, (), None)


def all_tags(job: JobReader) -> tuple[str, ...]:
    """Return the tags of a job, the series of runs that it belongs to first."""
    return (*filter(None, [job.info.series]), *job.tags())


def _number_of(traced: Mapping[str, int], kind: str) -> int:
    """Return the number of traces of ``kind``; if the name is unknown, that of all kinds."""
    return traced.get(str(KINDS_BY_NAME[kind]), 0) if kind in KINDS_BY_NAME else sum(traced.values())


def _unreadable_jobs(jobs: Sequence[JobReader], errors: Sequence[DamagedJobError]) -> list[UnreadableJob]:
    """Return the jobs with ``errors`` in their job files; ``jobs`` are all other jobs."""
    ids = short_ids([*(error.uid for error in errors), *(job.info.hex for job in jobs)]) if errors else {}
    return [UnreadableJob(unreadable_row(error.uid, ids[error.uid]), error) for error in errors]


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
    jobs = [listed_job for listed_job in job_listing(store, now_ns).jobs if listed_job.job.info.uid in uids]
    for listed_job in jobs:
        _check_not_running(listed_job.job.info.uid, store)
    return [Removable(listed_job, listed_job.job.size()) for listed_job in jobs]


def ended_jobs(store: StoreReader, job_filter: JobFilter, before_ns: int, now_ns: int) -> list[Removable]:
    """Return the jobs that ``job_filter`` selects and that ended before ``before_ns`` (real time).

    Jobs that may still run are left out. If the end of a job is unknown, the last change of its
    data counts as its end.
    """
    jobs = []
    for listed_job in job_listing(store, now_ns, job_filter).jobs:
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
