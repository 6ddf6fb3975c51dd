"""Readers of a store.

They need read access to the folder, but no lock and no daemon.
"""

import os
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from ..errors import DamagedJobError, NoSuchJobError, StoreError
from . import catalog, executions, lock, segment, shared, totals, trace_ranges
from .catalog import JobInfo
from .columns import pc
from .protocols import Executions, JobReader, RecordedTotals
from .schema import HOST_SAMPLES
from .selectors import selected
from .snapshot import Snapshot, with_stable_snapshot
from .sql_queries import DUCKDB, Sql

T = TypeVar("T")
#: By root of a store, the holder of a collector's lock there, None if nobody holds it.
Holders = Mapping[Path, Mapping[str, Any] | None]


class LocalJob:
    """One job, or the samples of one host.

    Each call reads the current content: the segments and the log.
    """

    def __init__(self, folder: Path, info: JobInfo, snapshot: Snapshot | None = None) -> None:
        """Read ``folder``; ``snapshot``: a snapshot to read instead of the current content."""
        self.folder = folder
        self.info = info
        self._snapshot = snapshot

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return table ``name`` of schema.JOB_TABLES, or only ``columns``.

        Sealed ``ops`` are sorted by (node, device, trace) within each row group; all other rows are
        in order of arrival.
        """
        return self.with_snapshot(lambda snapshot: snapshot.table(name, columns))

    def totals(self) -> RecordedTotals:
        """Return the totals of the job file. If it has none, they are read from the tables."""
        return self.with_snapshot(_totals)

    def pieces(self, name: str, start: int = 0) -> Iterator[pa.Table]:
        """Yield the rows of table ``name`` from ``start`` on: of each segment, then of the log."""
        snapshot = self.with_snapshot(lambda snapshot: snapshot)
        try:
            yield from snapshot.pieces(name, start)
        except FileNotFoundError:
            if self._snapshot is not None:  # `with_stable_snapshot` calls the action again
                raise
            raise StoreError(
                f"{self.folder} changed while it was read: it was removed, or continued", "store-removed"
            ) from None

    def rollup(self, traces: Iterable[int] | None = None) -> pa.Table:
        """Return the ROLLUP of the traces with the numbers ``traces``, None for all.

        Unknown numbers are ignored. Nodes have the canonical devices of the whole job, as in the TF
        profiler.
        """
        if traces is None:
            return self.with_snapshot(trace_ranges.rollup_of_all)
        numbers = sorted(set(traces))
        return self.with_snapshot(lambda snapshot: trace_ranges.rollup_of_traces(snapshot, numbers))

    def unit_times(self, rollup: pa.Table, traces: Iterable[int] | None = None) -> pa.Table:
        """Return node, device and ``ns`` of each node on a device; see `step_times.unit_times`.

        ``traces``: the numbers of the traces, None for all; ``rollup``: their ROLLUP.
        """
        if traces is None:
            return self.with_snapshot(lambda snapshot: trace_ranges.unit_times_of_all(snapshot, rollup))
        numbers = sorted(set(traces))
        return self.with_snapshot(lambda snapshot: trace_ranges.unit_times_of_traces(snapshot, numbers, rollup))

    def times(self, traces: Iterable[int]) -> pa.Table:
        """Return the time of each node on each device in each of ``traces``.

        The columns are node, device, trace and ns.
        """
        numbers = sorted(set(traces))
        return self.with_snapshot(lambda snapshot: trace_ranges.times_by_trace(snapshot, numbers))

    def tags(self) -> tuple[str, ...]:
        """Return the job's tags."""
        return catalog.tags(self.folder)

    def change_tags(self, change: Callable[[tuple[str, ...]], Sequence[str]]) -> tuple[str, ...]:
        """Replace the tags with the result of ``change``, and return it; see the protocol."""
        return catalog.change_tags(self.folder, change)

    def size(self) -> int:
        """Return the bytes of the job's files, 0 if they cannot be read."""
        from . import retention  # noqa: PLC0415  # few commands need it

        return retention.size_on_disk(self.folder)

    def last_write_ns(self) -> int:
        """Return the time of the last change of a file of the job, 0 if there is none."""
        return catalog.last_write_ns(self.folder)

    def store_uids(self) -> list[str]:
        """Return the uids, in hexadecimal, of all jobs in the job's store."""
        return [folder.name for folder in catalog.folders(self.folder.parents[1])]

    def executions(self, traces: Collection[int], columns: Sequence[str]) -> Executions:
        """Return the executions of ``traces``, with ``columns`` of `ops`."""
        return self.with_snapshot(lambda snapshot: executions.executions(snapshot, traces, columns))

    def canonical_devices(self) -> dict[int, int]:
        """Return node -> canonical device."""
        return self.with_snapshot(lambda snapshot: executions.canonical(snapshot, snapshot.table("names")))

    def rows_of_traces(self, name: str, traces: Collection[int]) -> pa.Table:
        """Return the rows of table ``name`` of ``traces``."""
        return self.with_snapshot(lambda snapshot: executions.rows_of_traces(snapshot, name, traces))

    def host_samples(self) -> pa.Table:
        """Return the samples of the job's host, from before the job on; the table may be empty.

        An imported job has its own, from the host and the time where it ran.
        """
        if self.info.rows.get("host_samples"):
            return self.table("host_samples")
        return _host_samples(self.folder.parents[1], self.info)

    def archive(self) -> Iterator[bytes]:
        """Yield the job as one file, which `archive_import.import_archive` reads."""
        from .archive import contents, pieces  # noqa: PLC0415  # few commands need it

        yield from pieces(self.with_snapshot(contents), self.info.state, self.tags(), self.host_samples())

    def window_labels(self, streams: Collection[int]) -> dict[int, int]:
        """Return node -> one of its labels; ``streams``: devices of kernels."""
        return self.with_snapshot(lambda snapshot: executions.window_labels(snapshot, streams))

    def with_sql(self, action: Callable[[Sql], T]) -> T:
        """Return the result of ``action``, which runs SQL on one snapshot.

        ``action`` may be called more than once.
        """
        from .sql import sql_session  # noqa: PLC0415  # loading duckdb takes half of a command's start-up; few use it

        def run_action(snapshot: Snapshot) -> T:
            with sql_session(snapshot) as query:
                return action(Sql(query, DUCKDB))

        return self.with_snapshot(run_action)

    def on_one_snapshot(self, action: Callable[[JobReader], T]) -> T:
        """Return the result of ``action`` on one snapshot of the job.

        ``action`` may be called more than once.
        """
        return self.with_snapshot(lambda snapshot: action(self._job_at(snapshot)))

    def _job_at(self, snapshot: Snapshot) -> "LocalJob":
        """Return the job as it is in ``snapshot``; a stale job stays stale."""
        info = snapshot.info
        if info.state == catalog.RUNNING and self.info.state == catalog.STALE:
            info = replace(info, state=catalog.STALE)
        return LocalJob(self.folder, info, snapshot)

    def with_snapshot(self, action: Callable[[Snapshot], T]) -> T:
        """Return the result of ``action`` on a snapshot of the job.

        If files of the snapshot disappear meanwhile, ``action`` is called again on a new snapshot.
        """
        return with_stable_snapshot(self.folder, action) if self._snapshot is None else action(self._snapshot)


def _host_samples(root: Path, info: JobInfo) -> pa.Table:
    """Return the samples of a job's host below ``root`` from `first_sample_ns` on."""
    from .archive import first_sample_ns  # noqa: PLC0415  # few commands need it

    host = info.host
    folder = catalog.host_folder(root, host)
    if not host or not folder.is_dir():
        return HOST_SAMPLES.empty_table()
    try:
        return with_stable_snapshot(folder, partial(_samples_since, since_ns=first_sample_ns(info)))
    except (FileNotFoundError, NoSuchJobError):  # just removed
        return HOST_SAMPLES.empty_table()


def _samples_since(snapshot: Snapshot, since_ns: int) -> pa.Table:
    name = "host_samples"
    tables = [snapshot.unsealed(name)]
    for _, path in reversed(snapshot.segments(name)):
        tables.append(segment.read(path, name))
        if (pc.max(tables[-1]["t_ns"]).as_py() or 0) < since_ns:
            break
    rows = pa.concat_tables(reversed(tables))
    return rows.filter(pc.greater_equal(rows["t_ns"], pa.scalar(since_ns, pa.int64())))


def _totals(snapshot: Snapshot) -> RecordedTotals:
    recorded = totals.in_job_file(snapshot.info)
    if recorded is None:
        return totals.of_tables(snapshot.table)
    snapshot.check(totals.TABLES)
    return recorded


class LocalStore:
    """A store folder, read only."""

    def __init__(self, path: str | os.PathLike[str], host: str | None = None) -> None:
        """Open the store at ``path``.

        ``host``: the host on which the store is read, by default this host. StoreError, for example
        ``store-missing`` or ``store-version``, if it cannot be read.
        """
        self.path = Path(path)
        self._host = host or socket.gethostname()
        catalog.check(self.path)

    @property
    def address(self) -> str:
        """The path of the store, as shown to users."""
        return str(self.path)

    def jobs(self) -> list[LocalJob]:
        """Return all readable jobs, in the order in which they were opened."""
        return self.read()[0]

    def job(self, selector: str) -> LocalJob:
        """Return the job that ``selector`` means; errors as for `selectors.selected`."""
        return selected(*self.read(), selector)

    def with_stale_state(self, info: JobInfo) -> JobInfo:
        """Return ``info``, with state `stale` if the job is running but its collector has ended.

        ``info`` must be the content of a job file that was just read.
        """
        return self.with_holder(info, catalog.job_folder(self.path, info.uid), self.holders())

    def holders(self) -> Holders:
        """Return the holder of the lock of this host's collector in each root."""
        return {root: lock.holder(catalog.lock_file(root, self._host)) for root in shared.roots(self.path)}

    def with_holder(self, info: JobInfo, folder: Path, holders: Holders) -> JobInfo:
        """Do what ``with_stale_state`` does, for the job in ``folder`` and known ``holders``."""
        return catalog.with_stale_state(info, self._host, holders.get(folder.parents[1]))

    def current(self, uid: int) -> JobInfo | None:
        """Return the content of the job file of job ``uid`` as it is now; see the protocol."""
        try:
            return self.with_stale_state(catalog.load(catalog.job_folder(self.path, uid)))
        except FileNotFoundError:
            return None

    def remove(self, uids: Iterable[int]) -> None:
        """Remove the jobs ``uids``, then the samples of hosts without a job.

        A running collector removes the samples of its host itself.
        """
        from . import retention  # noqa: PLC0415  # few commands need it

        is_changed = False
        for uid in uids:
            retention.remove(self.path, uid)
            is_changed = True
        needed_from = retention.samples_needed_from(self.path) if is_changed else None
        if needed_from is not None:
            retention.remove_hosts(self.path, needed_from)

    def read(self) -> tuple[list[LocalJob], list[DamagedJobError]]:
        """Return the readable jobs, and the error of each damaged one."""
        jobs: list[LocalJob] = []
        errors: list[DamagedJobError] = []
        holders = self.holders()
        for folder in catalog.folders(self.path):
            try:
                jobs.append(LocalJob(folder, self.with_holder(catalog.load(folder), folder, holders)))
            except FileNotFoundError:
                continue  # just created, or just removed
            except StoreError as error:
                errors.append(DamagedJobError(error, folder.name))
        return sorted(jobs, key=lambda job: job.info.opened_ns), errors
