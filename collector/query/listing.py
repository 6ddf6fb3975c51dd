"""Lists the jobs of a store: their state, resource use and tags."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from ..errors import TfprofError
from ..store import catalog
from ..store.columns import column_list
from ..store.protocols import JobReader, StoreReader
from ..summaries.host import UNKNOWN_USAGE, Usage, usage
from ..summaries.jobs import STARTING, JobRow, job_rows
from ..summaries.kinds import KINDS_BY_NAME

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
    """A selection of jobs by state, name and start.

    A job is selected if it is in any of ``states``, its name matches any of ``names`` (patterns),
    and it started at ``since_ns`` (real time) or later. An empty collection selects all.
    """

    states: Collection[str] = ()
    names: Collection[str] = ()
    since_ns: int = 0

    def matches(self, row: JobRow) -> bool:
        """Return whether the job of ``row`` is selected."""
        name = row.name.lower()
        return (
            row.started_ns >= self.since_ns
            and (not self.states or row.state in self.states or (row.phase == STARTING and STARTING in self.states))
            and (not self.names or any(fnmatchcase(name, pattern.lower()) for pattern in self.names))
        )


ALL_JOBS: Final = JobFilter()


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A listed job.

    ``traced`` is the number of its stored traced steps of the main kind. It is None if they cannot
    be read.
    """

    job: JobReader
    row: JobRow
    usage: Usage
    tags: tuple[str, ...]
    traced: int | None


def listed_jobs(store: StoreReader, now_ns: int, job_filter: JobFilter = ALL_JOBS) -> list[ListedJob]:
    """Return the jobs that ``job_filter`` selects, in the order in which they were opened."""
    jobs = store.jobs()
    rows = job_rows([job.info for job in jobs], now_ns)
    return list(_matching_jobs(jobs, rows, job_filter))


def _matching_jobs(jobs: Sequence[JobReader], rows: Sequence[JobRow], job_filter: JobFilter) -> Iterator[ListedJob]:
    for job, row in zip(jobs, rows, strict=True):
        if job_filter.matches(row):
            yield ListedJob(job, row, resource_use(job), job.tags(), _traced_count(job, row.step_kind))


def _traced_count(job: JobReader, kind: str) -> int | None:
    try:
        kinds = column_list(job.table("traces", ("kind",)), "kind")
    except TfprofError:
        return None
    return kinds.count(KINDS_BY_NAME[kind]) if kind in KINDS_BY_NAME else len(kinds)


def resource_use(job: JobReader) -> Usage:
    """Return the resource use of a job's processes, UNKNOWN_USAGE if the job cannot be read."""
    try:
        return usage(job.table("samples", ("t_ns", "cpu_user_s", "cpu_system_s", "rss_bytes")))
    except TfprofError:
        return UNKNOWN_USAGE
