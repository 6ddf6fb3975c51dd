"""The current state of all jobs of a store; each update reads only new rows."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ...formats import span_kinds
from ...formats.ids import hex_id
from ...formats.layout import SECOND_NS
from ..errors import TfprofError
from ..store import catalog, lock
from ..store.catalog import RUNNING, JobInfo
from ..store.columns import row_tuples
from ..store.devices import can_be_canonical
from ..store.reader import LocalJob, LocalStore
from ..store.row_follower import FileVersion, RowFollower
from ..store.schema import DEVICE
from ..store.selectors import short_ids
from ..summaries.jobs import ENDED, STARTING, JobRow, channel_words, job_row
from ..summaries.kinds import KINDS_BY_NAME, by_kind, kind_name, main_kind_of, span_kind, step_kind_of
from ..summaries.pace import NO_PACE, Pace, PaceKeeper, SpanRow
from ..summaries.top import short_device
from ..tfviews.nodes import interned_texts

#: Jobs that ended longer ago than this are left out by default; older alerts are not shown.
RECENT_NS: Final = 600 * SECOND_NS
#: Interval at which the job files of ended jobs are read again if they changed. A job's devices are
#: also read at this interval until they are known.
_RESCAN_NS: Final = 10 * SECOND_NS
#: Maximum number of span entries that an update reads of a job, and of samples kept for rates.
_SPANS_MAX: Final = 5_000
_SAMPLES_MAX: Final = 6
#: Maximum number of alerts that an update reads of a job.
_ALERTS_MAX: Final = 10
#: Maximum number of kinds of steps of a job whose pace is kept; each function is a kind.
_KINDS_MAX: Final = 50
#: Takes the rows of a job by table, from the first one on.
TakeRows = Callable[[Mapping[str, pa.Table]], None]
#: Maximum age of a sample that is used. A job is idle if it has run no step for longer than this
#: time, and for five times its step time.
_MAX_AGE_NS: Final = 10 * SECOND_NS
#: Number of points in a trend.
TREND_POINTS: Final = 8
#: A job is slow if its steps take this multiple of the usual time.
SLOW: Final = 1.3
_SPAN_COLUMNS: Final = ("kind", "key", "ordinal", "start_ns", "total_ns", "count", "flags")
_SAMPLE_COLUMNS: Final = ("t_ns", "cpu_user_s", "cpu_system_s", "rss_bytes", "read_bytes", "write_bytes")
_ALERT_COLUMNS: Final = ("found_ns", "slug")
_HOST_COLUMNS: Final = (
    "t_ns",
    "cpus",
    "cpu_busy_s",
    "load_1m",
    "memory_total_bytes",
    "memory_available_bytes",
)


@dataclass(frozen=True, slots=True)
class CurrentUsage:
    """Current resource use of a job's processes; unknown values are None.

    ``cpu_cores`` is the number of busy cores, ``memory_bytes`` the resident memory. The other
    fields are rates of I/O.
    """

    cpu_cores: float | None = None
    memory_bytes: int | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None

    @property
    def io_bytes_per_s(self) -> float | None:
        """Bytes read and written per second."""
        known_rates = [rate for rate in (self.read_bytes_per_s, self.write_bytes_per_s) if rate is not None]
        return sum(known_rates) if known_rates else None


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
    """The state of a running job between updates."""

    follower: RowFollower
    take: TakeRows
    paces: dict[int, PaceKeeper] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)  # kind of span -> its last ordinal
    times: dict[int, int] = field(default_factory=dict)
    samples: deque[tuple[Any, ...]] = field(default_factory=lambda: deque(maxlen=_SAMPLES_MAX))
    devices: tuple[str, ...] = ()
    devices_read_ns: int = 0
    last_alert: tuple[int, str] | None = None

    def alert(self, now_ns: int) -> str | None:
        """Return the slug of the latest alert if it is recent."""
        return self.last_alert[1] if self.last_alert is not None and now_ns - self.last_alert[0] <= RECENT_NS else None

    def read_new_rows(self) -> JobInfo:
        """Read the new rows and return the content of the job file."""
        new_rows = self.follower.new_rows()
        self.take(new_rows)
        if "spans" in new_rows:
            self._add_spans(new_rows["spans"])
        if "samples" in new_rows:
            self.samples.extend(_last_rows(new_rows["samples"], _SAMPLE_COLUMNS, _SAMPLES_MAX))
        if "alerts" in new_rows:
            self.last_alert = max(_last_rows(new_rows["alerts"], _ALERT_COLUMNS, _ALERTS_MAX))
        return self.follower.info

    def _add_spans(self, spans: pa.Table) -> None:
        by_kind: dict[int, list[SpanRow]] = {}
        for kind_of_span, key, ordinal, start, total, count, flags in _last_rows(spans, _SPAN_COLUMNS, _SPANS_MAX):
            kind = step_kind_of(kind_of_span, key)
            self.last[kind_of_span] = max(self.last.get(kind_of_span, 0), ordinal + count - 1)
            known_kinds = self.paces.keys() | by_kind.keys()
            if span_kinds.is_step(kind_of_span) and (kind in known_kinds or len(known_kinds) < _KINDS_MAX):
                steps = max(1, count)  # a forged log may have 0
                by_kind.setdefault(kind, []).append(SpanRow(start, total, steps, flags))
        for kind, rows in by_kind.items():
            self.paces.setdefault(kind, PaceKeeper()).add(rows)
            self.counts[kind] = self.counts.get(kind, 0) + sum(row.steps for row in rows)
            self.times[kind] = self.times.get(kind, 0) + sum(row.total_ns for row in rows)


def _last_rows(table: pa.Table, columns: Sequence[str], rows_max: int) -> list[tuple[Any, ...]]:
    return list(row_tuples(table.slice(max(0, table.num_rows - rows_max)), *columns))


def _taken_by_none(_rows: Mapping[str, pa.Table]) -> None:
    """Ignore the rows."""


class Watch:
    """The jobs and hosts of a store; each `update` reads only new rows."""

    def __init__(
        self,
        store: LocalStore,
        *,
        shows_all: bool = False,
        taker: Callable[[int], TakeRows] = lambda _uid: _taken_by_none,
    ) -> None:
        """Watch ``store``: running and recently ended jobs, or all jobs if ``shows_all``.

        ``taker`` gets the uid of each job that is found running. What it returns takes the job's
        spans, samples and alerts as they are read.
        """
        self.shows_all = shows_all
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

    def update(self, now_ns: int) -> WatchedStore:
        """Return the jobs and hosts at ``now_ns``."""
        self._scan(now_ns)
        holder = lock.holder(catalog.lock_file(self._store.path, self._store.host_name))
        jobs = [job for uid in list(self._running) if (job := self._running_job(uid, now_ns, holder)) is not None]
        jobs += [self._ended_job(info, now_ns) for info in self._ended.values()]
        shown_jobs = [job for job in jobs if self.shows_all or now_ns - (job.row.ended_ns or now_ns) <= RECENT_NS]
        hosts = (self._host(name, now_ns) for name in catalog.hosts(self._store.path))
        return WatchedStore(
            str(self._store.path), now_ns, tuple(shown_jobs), tuple(filter(None, hosts)), len(self._damaged)
        )

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
        is_rescan = now_ns - self._scanned_ns >= _RESCAN_NS
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
            self._running[uid] = _RunningJob(RowFollower(folder, ("spans", "samples", "alerts")), self._taker(uid))
        else:
            self._ended[uid], self._versions[uid] = info, version

    def _running_job(self, uid: int, now_ns: int, holder: Any) -> WatchedJob | None:
        running = self._running[uid]
        try:
            info = running.read_new_rows()
        except TfprofError:
            del self._running[uid]
            self._damaged.add(hex_id(uid))
            return None
        if info.state != RUNNING:
            del self._running[uid]
            self._ended[uid] = info
            return None
        info = catalog.with_stale_state(info, self._store.host_name, holder)
        row = self._row(info, now_ns)
        self._find_devices(running, row, now_ns)
        kind = _main_kind(row, running)
        pace = running.paces[kind].pace(now_ns, TREND_POINTS) if kind in running.paces else NO_PACE
        if row.phase == STARTING and running.paces:
            row = replace(row, phase=RUNNING, step_kind=kind_name(span_kind(kind)), steps=running.counts.get(kind, 0))
        row = _with_last_step(row, running)
        usage = _current_usage(running.samples, now_ns)
        return WatchedJob(
            info, row, pace, usage, running.devices, _idle_ns(running, row, pace, now_ns), running.alert(now_ns)
        )

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

    def _find_devices(self, running: _RunningJob, row: JobRow, now_ns: int) -> None:
        """Read the devices of the traced ops, unless they are known."""
        if running.devices or not row.traced or now_ns - running.devices_read_ns < _RESCAN_NS:
            return
        running.devices_read_ns = now_ns
        with suppress(TfprofError):
            names = interned_texts(
                LocalJob(running.follower.folder, running.follower.info).table("names"), DEVICE
            ).values()
            devices = {short_device(name) for name in names if can_be_canonical(name.lower().encode())}
            running.devices = tuple(sorted(device for device in devices if not device.startswith("CPU"))) or tuple(
                sorted(devices)
            )

    def _host(self, name: str, now_ns: int) -> WatchedHost | None:
        if name not in self._hosts:
            follower = RowFollower(catalog.host_folder(self._store.path, name), ("host_samples",))
            self._hosts[name] = follower, deque(maxlen=_SAMPLES_MAX)
        follower, samples = self._hosts[name]
        with suppress(TfprofError):
            new_rows = follower.new_rows()
            if "host_samples" in new_rows:
                samples.extend(_last_rows(new_rows["host_samples"], _HOST_COLUMNS, _SAMPLES_MAX))
        if not samples or now_ns - samples[-1][0] > _MAX_AGE_NS:
            return None
        t_ns, cpus, busy, load, memory, available = samples[-1]
        seconds = (t_ns - samples[0][0]) / SECOND_NS
        cores = min(float(cpus), max(0.0, busy - samples[0][2]) / seconds) if seconds > 0 else None
        return WatchedHost(name, cpus, cores, load, memory - available, memory)


def _main_kind(row: JobRow, running: _RunningJob) -> int:
    """Return the main kind of step, from the job file or else by time.

    If steps are function calls, return the function with the most time. -1 if no step of the kind
    is known.
    """
    times_by_span_kind: dict[int, int] = {}
    for kind, time_ns in running.times.items():
        times_by_span_kind[span_kind(kind)] = times_by_span_kind.get(span_kind(kind), 0) + time_ns
    main_span_kind = KINDS_BY_NAME.get(row.step_kind, main_kind_of(times_by_span_kind, times_by_span_kind))
    main_times = {kind: time_ns for kind, time_ns in running.times.items() if span_kind(kind) == main_span_kind}
    return max(main_times, key=main_times.__getitem__, default=-1)


def _with_last_step(row: JobRow, running: _RunningJob) -> JobRow:
    """Return ``row`` with the steps of the latest spans, since the job file is seconds older."""
    last = running.last.get(KINDS_BY_NAME.get(row.step_kind, -1), 0)
    if last <= row.steps:
        return row
    failed = by_kind(channel_words(running.follower.info).get("failed"))
    return replace(row, steps=max(row.steps, last - failed.get(KINDS_BY_NAME[row.step_kind], 0)))


def _current_usage(samples: Sequence[tuple[Any, ...]], now_ns: int) -> CurrentUsage:
    """Return the use in the last seconds, unknown if the last sample is old."""
    if not samples or now_ns - samples[-1][0] > _MAX_AGE_NS:
        return CurrentUsage()
    first, last = samples[0], samples[-1]
    seconds = (last[0] - first[0]) / SECOND_NS
    if seconds <= 0:
        return CurrentUsage(memory_bytes=last[3] or None)
    cpu_cores, read_rate, write_rate = (
        max(0.0, now - then) / seconds
        for now, then in ((sum(last[1:3]), sum(first[1:3])), (last[4], first[4]), (last[5], first[5]))
    )
    return CurrentUsage(cpu_cores, last[3] or None, read_rate, write_rate)


def _idle_ns(running: _RunningJob, row: JobRow, pace: Pace, now_ns: int) -> int | None:
    """Return the time since the last step of any kind if steps of the job's main kind have stopped.

    None if they have not, or if the time is at most _MAX_AGE_NS.
    """
    if row.phase != RUNNING or pace.per_s != 0.0:
        return None
    last_steps_ns = [keeper.last_ns for keeper in running.paces.values() if keeper.last_ns is not None]
    idle_ns = now_ns - max(last_steps_ns) if last_steps_ns else 0
    return idle_ns if idle_ns > _MAX_AGE_NS else None


# -- sorting and filtering -----------------------------------------------------------------------


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
