"""The figures of a store's jobs for monitoring; each update reads only what is new."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ...formats.span_kinds import name_of
from ..alerts.alert import SLUGS
from ..errors import StoreError, TfprofError
from ..store import catalog
from ..store.catalog import LOST_COUNTERS, MAY_CONTINUE, JobInfo, integer_of
from ..store.protocols import JobReader, StoreReader
from ..store.reader import LocalStore
from ..summaries.job_totals import Histogram, JobTotals
from ..summaries.jobs import ENDED, STARTING, JobRow, channel_words, counts_of, functions_of
from ..summaries.kinds import KINDS_BY_NAME, by_kind, kind_name
from ..summaries.parts import Breakdown
from .breakdown import breakdowns
from .listing import STATES
from .store_watch import StoreWatch, open_watch
from .watching import TakeRows, Watch, WatchedJob, WatchedStore

#: Maximum number of jobs with figures of their own.
JOBS_MAX: Final = 200
#: Time after which an update computes the parts of no further job's steps (seconds).
_PARTS_S: Final = 2.0
#: State of jobs whose state is none of STATES.
OTHER_STATE: Final = "other"
#: Names of what is left out: jobs that ended too long ago, jobs beyond JOBS_MAX, jobs whose parts
#: wait for another update, and steps of kinds without a histogram.
ENDED_JOBS, FURTHER_JOBS, PARTS, STEPS = "ended_jobs", "further_jobs", "parts", "steps"
_ROWS_TAKEN: Final = ("spans", "alerts")


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """The figures of one job. Those in mappings only grow while the job exists, except ``parts``.

    ``steps`` and ``failed``: number of steps by name of kind, all functions being one kind, those
    that succeeded and those that failed. ``times``: histogram of the normal steps by name of kind.
    ``lost``: number of lost entries by counter, empty if it is unknown. ``alerts``: number of
    alerts by slug. ``parts``: the parts of the steps, None if no step was traced.
    ``memory_bytes``: resident memory now, None if unknown.
    """

    row: JobRow
    steps: Mapping[str, int]
    failed: Mapping[str, int]
    traced: int
    times: Mapping[str, Histogram]
    lost: Mapping[str, int]
    alerts: Mapping[str, int]
    parts: Breakdown | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class StoreMetrics:
    """The figures of the jobs of a store.

    ``states``: number of all jobs by state. ``left_out``: number of things that have no figures.
    """

    states: Mapping[str, int]
    jobs: tuple[JobMetrics, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


class MetricsReader:
    """Reads the figures of the jobs of the store at ``path``, which ``open_store`` opens.

    Jobs that ended more than ``ended_ns`` ago have none. A store that does not exist yet has no
    jobs.
    """

    def __init__(self, path: str, ended_ns: int, open_store: Callable[[str], StoreReader] = LocalStore) -> None:
        self._path, self._ended_ns, self._open = path, ended_ns, open_store
        self._watch: Watch | StoreWatch | None = None
        self._totals: dict[int, JobTotals] = {}
        self._parts: dict[int, tuple[int, Breakdown | None]] = {}
        self._most: dict[int, dict[tuple[str, str], int]] = {}

    def update(self, now_ns: int) -> StoreMetrics:
        """Return the figures at ``now_ns``; StoreError if the store cannot be read."""
        watched = self._watched(now_ns)
        jobs = () if watched is None else watched.jobs
        states = dict.fromkeys((*STATES, catalog.DAMAGED, OTHER_STATE), 0)
        for job in jobs:
            state = _state(job.row)
            states[state if state in states else OTHER_STATE] += 1
        states[catalog.DAMAGED] += 0 if watched is None else watched.damaged
        recent = [job for job in jobs if now_ns - (job.row.ended_ns or now_ns) <= self._ended_ns]
        recent.sort(key=lambda job: (job.row.phase == ENDED, -(job.row.ended_ns or 0), job.row.started_ns))
        self._forget(
            {job.info.uid for job in jobs if job.info.state in MAY_CONTINUE} | {job.info.uid for job in recent}
        )
        shown = recent[:JOBS_MAX]
        waiting = self._compute_parts(shown)
        metrics = tuple(self._job(job) for job in shown)
        left_out = {
            ENDED_JOBS: len(jobs) - len(recent),
            FURTHER_JOBS: len(recent) - len(shown),
            PARTS: waiting,
            STEPS: sum(self._totals_of(job.info).steps_left_out for job in shown),
        }
        return StoreMetrics(states, metrics, left_out)

    def _watched(self, now_ns: int) -> WatchedStore | None:
        try:
            self._watch = self._watch or open_watch(self._open(self._path), self._taker)
            return self._watch.update(now_ns)
        except StoreError as error:
            if error.slug != "store-missing":
                raise
            self._watch = None
            return None

    def _taker(self, uid: int) -> TakeRows:
        self._totals[uid] = JobTotals()
        return self._totals[uid].add

    def _forget(self, uids: set[int]) -> None:
        """Drop what is kept of all jobs but ``uids``."""
        for kept in (self._totals, self._parts, self._most):
            for uid in kept.keys() - uids:
                del kept[uid]

    def _totals_of(self, info: JobInfo) -> JobTotals:
        """Return the totals of a job; those of a job that was never seen running are read once."""
        if info.uid not in self._totals:
            totals = JobTotals()
            with suppress(TfprofError):  # the job is damaged, or was removed meanwhile, or is read again
                job = self._reader(info)
                totals.add({name: job.table(name) for name in _ROWS_TAKEN})
                self._totals[info.uid] = totals
            return totals
        return self._totals[info.uid]

    def _reader(self, info: JobInfo) -> JobReader:
        assert self._watch is not None, "nothing was read yet"
        return self._watch.reader(info)

    def _compute_parts(self, jobs: list[WatchedJob]) -> int:
        """Compute the parts of jobs with new traced steps; return the number of those left out.

        This reads traced steps, which takes 0.1 s or more a job.
        """
        due = [job for job in jobs if job.row.traced and self._parts.get(job.info.uid, (0,))[0] != job.row.traced]
        due.sort(key=lambda job: job.info.uid in self._parts)
        start = time.monotonic()
        for index, job in enumerate(due):
            if time.monotonic() - start > _PARTS_S:
                return len(due) - index
            with suppress(TfprofError):  # the job is damaged, or was removed meanwhile, or is read again
                found = breakdowns(self._reader(job.info)).breakdowns
                self._parts[job.info.uid] = job.row.traced, next(iter(found), None)
        return 0

    def _job(self, job: WatchedJob) -> JobMetrics:
        info, row = job.info, job.row
        words, totals = channel_words(info), self._totals_of(info)
        counts, failed = by_kind(counts_of(info)), by_kind(words.get("failed"))
        # Spans may be stored earlier than the counters, and not all of them are stored.
        succeeded = {
            name_of(kind): max(counts.get(kind, 0) - failed.get(kind, 0), totals.steps.get(kind, 0))
            for kind in KINDS_BY_NAME.values()
            if kind in counts or kind in totals.steps
        }
        lost = {} if row.lost is None else {name: integer_of(words, name) for name in LOST_COUNTERS}
        return JobMetrics(
            row,
            self._growing(info.uid, "steps", succeeded),
            self._growing(info.uid, "failed", {name_of(kind): failed.get(kind, 0) for kind in counts}),
            self._growing(info.uid, "traced", {"": row.traced})[""],
            _by_name(totals.times, functions_of(info)),
            self._growing(info.uid, "lost", lost),
            {slug: totals.alerts.get(slug, 0) for slug in SLUGS},
            self._parts.get(info.uid, (0, None))[1],
            job.usage.memory_bytes,
        )

    def _growing(self, uid: int, figure: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Return ``counts``, each at least as large as in any update before.

        A job's counters are read one after the other, so the difference of two counters may shrink
        from one update to the next.
        """
        most = self._most.setdefault(uid, {})
        for name, count in counts.items():
            most[figure, name] = max(count, most.get((figure, name), 0))
        return {name: most[figure, name] for name in counts}


def _state(row: JobRow) -> str:
    return STARTING if row.phase == STARTING else row.state


def _by_name(times: Mapping[int, Histogram], functions: Mapping[int, str]) -> dict[str, Histogram]:
    """Return histograms by the name of their kind.

    If several kinds have one name, the later ones are named by their keys.
    """
    named: dict[str, Histogram] = {}
    for kind, histogram in times.items():
        name = kind_name(kind, functions)
        named[kind_name(kind) if name in named else name] = histogram
    return named
