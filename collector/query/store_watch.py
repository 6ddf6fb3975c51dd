"""The current state of all jobs of any store, by its protocol; see `watching` for folders."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ...formats.layout import SECOND_NS
from ..store.catalog import RUNNING, JobInfo
from ..store.protocols import JobReader, StoreReader
from ..store.reader import LocalStore
from ..store.selectors import short_ids
from ..summaries.jobs import job_row
from ..summaries.live import HOST_COLUMNS, SAMPLES_MAX, CurrentUsage, LiveJob, host_figures
from ..summaries.step_times import NO_PACE
from .followed import READING_S, rows_since
from .watching import (
    WATCHED_TABLES,
    TakeRows,
    Watch,
    WatchedHost,
    WatchedJob,
    WatchedStore,
    add_rows,
    last_rows,
    watched_job,
)

_READING_NS: Final = int(READING_S * SECOND_NS)


class _RunningJob:
    """The state of a running job between updates."""

    def __init__(self, take: TakeRows | None) -> None:
        self._take = take
        self._counts = dict.fromkeys((*WATCHED_TABLES, "names", "host_samples"), 0)
        self.live = LiveJob()
        self._samples: list[tuple[object, ...]] = []

    def read(self, job: JobReader) -> None:
        """Read the new rows of ``job``."""
        new_rows = rows_since(job, self._counts)
        names, samples = new_rows.pop("names", None), new_rows.pop("host_samples", None)
        if self._take is not None:
            self._take(new_rows)
        add_rows(self.live, new_rows)
        if names is not None and not self.live.devices:
            self.live.add_names(names)
        if samples is not None:
            self._samples = [*self._samples, *last_rows(samples, HOST_COLUMNS, SAMPLES_MAX)][-SAMPLES_MAX:]

    def host(self, name: str) -> WatchedHost | None:
        """Return the state of the job's host ``name``, None without samples."""
        figures = host_figures(self._samples)
        return None if figures is None else WatchedHost(name, *figures[1:])


class StoreWatch:
    """The jobs of ``store``; each `update` reads only new rows.

    The figures of a running job are those at the time of its last copy.
    """

    def __init__(self, store: StoreReader, taker: Callable[[int], TakeRows] | None = None) -> None:
        """Watch ``store``; see `watching.Watch`."""
        self._store, self._taker = store, taker
        self._jobs: Mapping[int, JobReader] = {}
        self._running: dict[int, _RunningJob] = {}
        self._last: WatchedStore | None = None

    def reader(self, info: JobInfo) -> JobReader:
        """Return the reader of a job of the last update."""
        return self._jobs[info.uid]

    def update(self, now_ns: int) -> WatchedStore:
        """Return the jobs and hosts at ``now_ns``, or those of the last five seconds."""
        if self._last is None or not 0 <= now_ns - self._last.at_ns < _READING_NS:
            self._last = self._read(now_ns)
        return self._last

    def _read(self, now_ns: int) -> WatchedStore:
        jobs, damaged = self._store.read()
        self._jobs = {job.info.uid: job for job in jobs}
        self._running = {uid: running for uid, running in self._running.items() if uid in self._jobs}
        ids = short_ids([job.info.hex for job in jobs])
        watched = tuple(self._job(job, ids[job.info.hex], now_ns) for job in jobs)
        return WatchedStore(self._store.address, now_ns, watched, tuple(self._hosts()), len(damaged))

    def _job(self, job: JobReader, short_id: str, now_ns: int) -> WatchedJob:
        info, row = job.info, job_row(job.info, short_id, now_ns)
        if info.state != RUNNING:
            if info.uid in self._running:
                self._running[info.uid].read(job)  # its last rows
                del self._running[info.uid]
            return WatchedJob(info, row, NO_PACE, CurrentUsage(), (), None)
        if info.uid not in self._running:
            self._running[info.uid] = _RunningJob(self._taker and self._taker(info.uid))
        running = self._running[info.uid]
        running.read(job)
        return watched_job(info, row, running.live.figures(), min(now_ns, job.last_write_ns()))

    def _hosts(self) -> Iterable[WatchedHost]:
        """Yield the state of each host with running jobs."""
        jobs = {self._jobs[uid].info.host: running for uid, running in self._running.items()}
        return filter(None, (running.host(name) for name, running in sorted(jobs.items())))


def open_watch(store: StoreReader, taker: Callable[[int], TakeRows] | None = None) -> Watch | StoreWatch:
    """Return a watch of ``store``; see `watching.Watch`."""
    return Watch(store, taker) if isinstance(store, LocalStore) else StoreWatch(store, taker)
