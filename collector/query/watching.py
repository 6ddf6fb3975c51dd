"""The current state of all jobs of a store; each update reads only what is new."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import private_files, runtime_dir
from ...formats.ids import hex_id
from ...formats.layout import SECOND_NS
from ..errors import TfprofError
from ..store import catalog
from ..store.catalog import RUNNING, JobInfo
from ..store.columns import row_tuples
from ..store.reader import Holders, LocalJob, LocalStore
from ..store.row_follower import FileVersion, RowFollower
from ..store.selectors import short_ids
from ..summaries.jobs import ENDED, STARTING, JobRow, channel_words, job_row
from ..summaries.kinds import by_kind, kind_name, span_kind
from ..summaries.live import (
    HOST_COLUMNS,
    SAMPLE_AGE_NS,
    SAMPLE_COLUMNS,
    SAMPLES_MAX,
    SPAN_COLUMNS,
    CurrentUsage,
    HostFigures,
    KindFigures,
    LiveFigures,
    LiveJob,
    figures_of,
    host_figures,
)
from ..summaries.step_times import NO_PACE, Pace

#: Jobs that ended longer ago than this are left out by default; older alerts are not shown.
RECENT_NS: Final = 600 * SECOND_NS
#: Interval at which the job files of ended jobs are read again if they changed. A job's devices are
#: also read at this interval until they are known.
_RESCAN_NS: Final = 10 * SECOND_NS
#: Maximum number of span entries that an update reads of a job.
_SPANS_MAX: Final = 5_000
#: Maximum number of alerts that an update reads of a job.
_ALERTS_MAX: Final = 10
#: A function that takes the rows of a job by table, beginning with the first one.
TakeRows = Callable[[Mapping[str, pa.Table]], None]
#: A job is idle if it has run no step for longer than this time, and for five times its step time.
_IDLE_NS: Final = 10 * SECOND_NS
#: Maximum age of the figures that the collector has written.
_LIVE_AGE_NS: Final = 15 * SECOND_NS
#: A job is slow if its steps take this multiple of the usual time.
SLOW: Final = 1.3
_ALERT_COLUMNS: Final = ("found_ns", "slug")
#: Tables with what is shown of a running job.
WATCHED_TABLES: Final = ("spans", "samples", "alerts")


@dataclass(frozen=True, slots=True)
class WatchedJob:
    """The current state of one job; ``info``: its job file.

    ``idle_ns``: time since the last step, if unusually long; ``devices``: the GPUs of the traced
    ops, or the CPUs if there are no GPUs; ``alert``: slug of the latest alert of the last ten
    minutes.
    """

    info: JobInfo
    row: JobRow
    pace: Pace
    usage: CurrentUsage
    devices: tuple[str, ...]
    idle_ns: int | None
    alert: str | None = None

    @property
    def is_slow(self) -> bool:
        """Whether its steps take longer than before, or have stopped."""
        return self.idle_ns is not None or (self.pace.change or 0.0) >= SLOW


@dataclass(frozen=True, slots=True)
class WatchedHost:
    """The current state of one host: number of CPUs and of busy cores, load, and memory."""

    name: str
    cpus: int
    cpu_cores: float | None
    load_1m: float
    memory_used_bytes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class WatchedStore:
    """Jobs and hosts of ``store`` at the real time ``at_ns``.

    ``damaged``: number of unreadable jobs.
    """

    store: str
    at_ns: int
    jobs: tuple[WatchedJob, ...]
    hosts: tuple[WatchedHost, ...]
    damaged: int


@dataclass(slots=True)
class _RunningJob:
    """The state of a running job between updates.

    ``info`` and ``version``: the content of the job file, and what identifies it.
    """

    info: JobInfo
    version: FileVersion
    follower: RowFollower
    take: TakeRows | None
    live: LiveJob = field(default_factory=LiveJob)
    names_read_ns: int = 0

    def read_new_rows(self) -> None:
        """Read the new rows and the job file."""
        new_rows = self.follower.new_rows()
        self.info = self.follower.info
        if self.take is not None:
            self.take(new_rows)
        add_rows(self.live, new_rows)

    def read_job_file(self) -> None:
        """Read the job file, if it has changed."""
        version = FileVersion.of(self.follower.folder / catalog.JOB_FILE)
        if version != self.version:
            self.info, self.version = catalog.load(self.follower.folder), version

    def read_names(self, now_ns: int) -> None:
        """Read the names of the devices, unless they are known."""
        if self.live.devices or 0 <= now_ns - self.names_read_ns < _RESCAN_NS:
            return
        self.names_read_ns = now_ns
        with suppress(TfprofError):
            self.live.add_names(LocalJob(self.follower.folder, self.info).table("names"))


def add_rows(live: LiveJob, new_rows: Mapping[str, pa.Table]) -> None:
    """Add the new rows of WATCHED_TABLES to the figures of a job."""
    if "spans" in new_rows:
        live.add_spans(last_rows(new_rows["spans"], SPAN_COLUMNS, _SPANS_MAX))
    if "samples" in new_rows:
        live.add_samples(last_rows(new_rows["samples"], SAMPLE_COLUMNS, SAMPLES_MAX))
    if "alerts" in new_rows:
        found_ns, slug = max(last_rows(new_rows["alerts"], _ALERT_COLUMNS, _ALERTS_MAX))
        live.alert = found_ns, slug


def last_rows(table: pa.Table, columns: Sequence[str], rows_max: int) -> list[tuple[Any, ...]]:
    """Return ``columns`` of the last rows of ``table``, at most ``rows_max``."""
    return list(row_tuples(table.slice(max(0, table.num_rows - rows_max)), *columns))


class Watch:
    """The jobs and hosts of a store; each `update` reads only what is new.

    The collector writes the figures of its running jobs. Rows are read only for jobs without such
    figures. These are jobs of an earlier release and, for ten minutes, jobs that a new collector
    has found in the store.
    """

    def __init__(self, store: LocalStore, taker: Callable[[int], TakeRows] | None = None) -> None:
        """Watch ``store``.

        ``taker`` gets the uid of each job that is found running. It returns a function that takes
        the job's spans, samples and alerts as they are read.
        """
        self._taker = taker
        self._store = store
        self._running: dict[int, _RunningJob] = {}
        self._ended: dict[int, JobInfo] = {}
        self._versions: dict[int, FileVersion] = {}  # of the job files of ended jobs
        self._hosts: dict[str, tuple[RowFollower, deque[tuple[Any, ...]]]] = {}
        self._damaged: set[str] = set()
        self._short_ids: dict[str, str] = {}
        self._rows: dict[int, tuple[JobInfo, JobRow]] = {}  # valid for these short ids
        self._scanned_ns = 0

    def reader(self, info: JobInfo) -> LocalJob:
        """Return the reader of a job."""
        return LocalJob(catalog.job_folder(self._store.path, info.uid), info)

    def update(self, now_ns: int) -> WatchedStore:
        """Return the jobs and hosts at ``now_ns``; StoreError if the store was moved."""
        catalog.check(self._store.path)
        self._scan(now_ns)
        holders = self._store.holders()
        live = _Live({}, {}) if self._taker is not None else _live(holders, now_ns)
        running = (self._running_job(uid, now_ns, holders, live) for uid in list(self._running))
        jobs = [job for job in running if job is not None]
        jobs += [self._ended_job(info, now_ns) for info in self._ended.values()]
        hosts = (self._host(name, now_ns, live) for name in catalog.hosts(self._store.path))
        return WatchedStore(str(self._store.path), now_ns, tuple(jobs), tuple(filter(None, hosts)), len(self._damaged))

    def _scan(self, now_ns: int) -> None:
        """Find jobs that are new, removed, or running again."""
        folders = {path.name: path for path in catalog.folders(self._store.path)}
        if folders.keys() != self._short_ids.keys():
            self._short_ids = short_ids(list(folders))
            self._rows.clear()
        uids = {int(name, 16) for name in folders}
        for removed_uid in (self._running.keys() | self._ended.keys()) - uids:
            self._running.pop(removed_uid, None)
            self._ended.pop(removed_uid, None)
            self._versions.pop(removed_uid, None)
        is_rescan = not 0 <= now_ns - self._scanned_ns < _RESCAN_NS  # the clock may be set back
        if is_rescan:
            self._scanned_ns = now_ns
            self._damaged.clear()
        for name, folder in folders.items():
            uid = int(name, 16)
            if uid not in self._running and name not in self._damaged and (is_rescan or uid not in self._ended):
                self._classify(uid, folder)

    def _classify(self, uid: int, folder: Path) -> None:
        try:
            version = FileVersion.of(folder / catalog.JOB_FILE)
            if uid in self._ended and version == self._versions.get(uid):
                return
            info = catalog.load(folder)
        except FileNotFoundError:
            return
        except (TfprofError, OSError):
            self._damaged.add(folder.name)
            return
        if info.state == RUNNING:
            self._ended.pop(uid, None)
            follower = RowFollower(folder, WATCHED_TABLES)
            self._running[uid] = _RunningJob(info, version, follower, self._taker and self._taker(uid))
        else:
            self._ended[uid], self._versions[uid] = info, version

    def _running_job(self, uid: int, now_ns: int, holders: Holders, live: "_Live") -> WatchedJob | None:
        running = self._running[uid]
        figures = live.jobs.get(uid)
        try:
            if figures is None:
                running.read_new_rows()
            else:
                running.read_job_file()
        except (TfprofError, FileNotFoundError):
            del self._running[uid]
            self._damaged.add(hex_id(uid))
            return None
        if running.info.state != RUNNING:
            del self._running[uid]
            self._ended[uid] = running.info
            return None
        info = self._store.with_holder(running.info, running.follower.folder, holders)
        row = self._row(info, now_ns)
        if figures is None:
            if row.traced:
                running.read_names(now_ns)
            figures = running.live.figures()
        return watched_job(info, row, figures, now_ns)

    def _ended_job(self, info: JobInfo, now_ns: int) -> WatchedJob:
        return WatchedJob(info, self._row(info, now_ns), NO_PACE, CurrentUsage(), (), None)

    def _row(self, info: JobInfo, now_ns: int) -> JobRow:
        """Return the row of a job, which is made anew only if its job file has changed."""
        known_info, row = self._rows.get(info.uid, (None, None))
        if row is None or known_info is not info:
            row = job_row(info, self._short_ids.get(info.hex, info.hex), now_ns)
            self._rows[info.uid] = info, row
            return row
        return row if row.ended_ns else replace(row, duration_ns=max(0, now_ns - row.started_ns))

    def _host(self, name: str, now_ns: int, live: "_Live") -> WatchedHost | None:
        figures = live.hosts.get(name) or self._read_host(name)
        if figures is None or now_ns - figures.t_ns > SAMPLE_AGE_NS:
            return None
        return WatchedHost(name, *figures[1:])

    def _read_host(self, name: str) -> HostFigures | None:
        if name not in self._hosts:
            follower = RowFollower(catalog.host_folder(self._store.path, name), ("host_samples",))
            self._hosts[name] = follower, deque(maxlen=SAMPLES_MAX)
        follower, samples = self._hosts[name]
        with suppress(TfprofError):
            new_rows = follower.new_rows()
            if "host_samples" in new_rows:
                samples.extend(last_rows(new_rows["host_samples"], HOST_COLUMNS, SAMPLES_MAX))
        return host_figures(samples)


class _Live(NamedTuple):
    """The figures that the collector has written, of jobs by uid and of hosts by name."""

    jobs: Mapping[int, LiveFigures]
    hosts: Mapping[str, HostFigures]


def _live(holders: Holders, now_ns: int) -> _Live:
    """Return the figures of the collectors that hold the locks of the store, if they are new."""
    parts = [_live_of(str(root), holder, now_ns) for root, holder in holders.items()]
    jobs = {uid: figures for part in parts for uid, figures in part.jobs.items()}
    return _Live(jobs, {name: figures for part in parts for name, figures in part.hosts.items()})


def _live_of(store: str, holder: Mapping[str, Any] | None, now_ns: int) -> _Live:
    """Return the figures of the collector of ``store`` that holds its lock, if they are new.

    Users of a shared store cannot read them: its service has a runtime folder of its own.
    """
    document = private_files.read_json(f"{runtime_dir.instance_dir(store)}/{runtime_dir.LIVE}")
    try:
        if document is None or holder is None or document["collector"] != holder["id"]:
            return _Live({}, {})
        if abs(now_ns - document["written_ns"]) > _LIVE_AGE_NS:  # it may be replaced between the two calls
            return _Live({}, {})
        jobs = {int(uid, 16): figures_of(figures) for uid, figures in document["jobs"].items()}
        return _Live(jobs, {name: HostFigures(*values) for name, values in document["hosts"].items()})
    except (AttributeError, LookupError, TypeError, ValueError):  # it is of another release
        return _Live({}, {})


def watched_job(info: JobInfo, row: JobRow, figures: LiveFigures, now_ns: int) -> WatchedJob:
    """Return the state of a running job at ``now_ns``."""
    main = figures.main(row.step_kind)
    pace = NO_PACE if main is None else main.pace.at(now_ns)
    if row.phase == STARTING and main is not None:
        row = replace(row, phase=RUNNING, step_kind=kind_name(span_kind(main.kind)), steps=main.steps)
    if main is not None:
        row = _with_last_step(row, info, main)
    usage = figures.usage if now_ns - figures.sampled_ns <= SAMPLE_AGE_NS else CurrentUsage()
    is_recent = figures.alert is not None and now_ns - figures.alert[0] <= RECENT_NS
    alert = figures.alert[1] if figures.alert is not None and is_recent else None
    devices = figures.devices if row.traced else ()
    return WatchedJob(info, row, pace, usage, devices, _idle_ns(figures, row, pace, now_ns), alert)


def _with_last_step(row: JobRow, info: JobInfo, main: KindFigures) -> JobRow:
    """Return ``row`` with the steps of the latest spans, since the job file is seconds older."""
    if main.last <= row.steps:
        return row
    failed = by_kind(channel_words(info).get("failed")).get(span_kind(main.kind), 0)
    return replace(row, steps=max(row.steps, main.last - failed))


def _idle_ns(figures: LiveFigures, row: JobRow, pace: Pace, now_ns: int) -> int | None:
    """Return the time since the last step of any kind if steps of the job's main kind have stopped.

    None if they have not stopped, or if the time is at most _IDLE_NS.
    """
    if row.phase != RUNNING or pace.per_s != 0.0 or figures.last_ns is None:
        return None
    idle_ns = now_ns - figures.last_ns
    return idle_ns if idle_ns > _IDLE_NS else None


# -- sorting and filtering -----------------------------------------------------------------------


def recent(watched: WatchedStore) -> WatchedStore:
    """Return ``watched`` without the jobs that ended more than ten minutes ago."""
    at_ns = watched.at_ns
    return replace(watched, jobs=tuple(job for job in watched.jobs if at_ns - (job.row.ended_ns or at_ns) <= RECENT_NS))


def _none_as_least(value: float | None) -> float:
    return -1.0 if value is None else value


def _slowness(job: WatchedJob) -> float:
    """Return how slow a job is, for sorting.

    Jobs whose steps have stopped come first, then slow ones, then those with another alert.
    """
    if job.idle_ns is not None:
        return 1e9 + job.idle_ns
    change = job.pace.change or 0.0
    return change if change >= SLOW else float(job.alert is not None)


#: Sort key by order; running jobs always come before ended ones.
ORDERS: Final[dict[str, Callable[[WatchedJob], Any]]] = {
    "slow": lambda job: -_slowness(job),
    "time": lambda job: -_none_as_least(job.pace.step_ns),
    "rate": lambda job: -_none_as_least(job.pace.per_s),
    "cpu": lambda job: -_none_as_least(job.usage.cpu_cores),
    "memory": lambda job: -_none_as_least(job.usage.memory_bytes),
    "io": lambda job: -_none_as_least(job.usage.io_bytes_per_s),
    "cost": lambda job: -_none_as_least(job.row.cost),
    "lost": lambda job: -math.inf if job.row.lost is None else -job.row.lost,
    "name": lambda job: job.row.name.lower(),
    "started": lambda job: -job.row.started_ns,
}


def sorted_jobs(jobs: Sequence[WatchedJob], order: str, *, backwards: bool = False) -> list[WatchedJob]:
    """Return ``jobs`` sorted by one of `ORDERS`, then by name and start."""
    by_name = sorted(jobs, key=lambda job: (job.row.name.lower(), job.row.started_ns, job.row.uid))
    by_order = sorted(by_name, key=ORDERS[order], reverse=backwards)
    return sorted(by_order, key=lambda job: job.row.phase == ENDED)


def filtered_jobs(jobs: Sequence[WatchedJob], text: str) -> list[WatchedJob]:
    """Return the jobs with ``text`` in their name, user, host, id or state.

    `*` matches anything; case is ignored.
    """
    pattern = f"*{text.strip().lower()}*"
    return [job for job in jobs if any(fnmatchcase(word.lower(), pattern) for word in _words(job.row))]


def _words(row: JobRow) -> tuple[str, ...]:
    return (row.name, row.user, row.host, row.uid, row.state, row.phase)
