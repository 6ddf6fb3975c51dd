"""Readers of a store in ClickHouse: what a question counts or sums, the server counts and sums."""

import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa

from ..errors import DamagedJobError, NoSuchJobError, StoreError
from . import catalog, sql_queries, step_times, totals
from . import clickhouse_aggregates as aggregates
from .catalog import JobInfo
from .clickhouse_dialect import CLICKHOUSE, is_in
from .clickhouse_ranges import Ranges, row_counts
from .clickhouse_rows import JobTables
from .clickhouse_server import Server
from .clickhouse_setup import check_version
from .clickhouse_tables import JOBS, PART, ROW_TABLES
from .columns import flat, pc, row_tuples
from .executions import TRACE_COLUMNS
from .merging import with_canonical
from .protocols import Executions, JobReader, RecordedTotals
from .rollup import indexed_by_node
from .selectors import UID, selected
from .sql_queries import Sql

T = TypeVar("T")
#: A running job that was last copied longer ago than this counts as stale (ns).
STALE_NS: Final = 120 * 10**9
#: Maximum number of rows of a piece.
PIECE_ROWS: Final = 100_000

#: The value of a column at the last change of a job.
_LATEST: Final = "argMax({}, changed_ns)"


class _StoredJob(NamedTuple):
    """A row of `jobs`: the content of the job file, the tags, and the time of the last change."""

    info: JobInfo
    tags: tuple[str, ...]
    changed_ns: int


class EngineJob:
    """One job in ClickHouse. Its rows do not change after it was stored."""

    def __init__(self, store: "EngineStore", stored: _StoredJob) -> None:
        """Read the job ``stored`` of ``store``."""
        self._store = store
        self._tables = JobTables(store.server, stored.info.hex)
        self.stored = stored
        self.info = stored.info

    @property
    def ranges(self) -> Ranges:
        """The rows of each table that count, as they are when they are first read."""
        return self._tables.ranges

    def tags(self) -> tuple[str, ...]:
        """Return the job's tags."""
        return self.stored.tags

    def change_tags(self, change: Callable[[tuple[str, ...]], Sequence[str]]) -> tuple[str, ...]:
        """Replace the tags with the result of ``change``, and return it; see the protocol."""
        stored = self._store.stored(self.info.uid)
        if stored is None:
            raise NoSuchJobError(f"the job {self.info.hex} is not in the store any more")
        tags = tuple(change(stored.tags))
        self._store.save(stored.info, tags, stored)
        return tags

    def size(self) -> int:
        """Return the bytes of the job's rows as they were sent."""
        sizes = self._store.server.query(
            f"SELECT max(bytes) AS size FROM batches WHERE job = '{self.info.hex}' GROUP BY batch"  # noqa: S608
        )
        return sum(size for (size,) in row_tuples(sizes))

    def last_write_ns(self) -> int:
        """Return the time at which the job was stored or its tags were changed."""
        return self.stored.changed_ns

    def store_uids(self) -> list[str]:
        """Return the uids, in hexadecimal, of all jobs in the job's store."""
        is_there = f"{_LATEST.format('removed')} = 0"
        rows = self._store.server.query(f"SELECT job FROM jobs GROUP BY job HAVING {is_there} ORDER BY job")  # noqa: S608
        return [job.decode(errors="replace") for (job,) in row_tuples(rows)]

    def on_one_snapshot(self, action: Callable[[JobReader], T]) -> T:
        """Return the result of ``action`` on the job, whose rows do not change."""
        return action(self)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return table ``name``, or only ``columns`` of it, in the order in which it was stored."""
        return self._tables.names if name == "names" and columns is None else self._tables.table(name, columns)

    def totals(self) -> RecordedTotals:
        """Return the totals of the job file. If it has none, they are read from the tables."""
        return totals.in_job_file(self.info) or totals.of_tables(self.table)

    def pieces(self, name: str, start: int = 0) -> Iterator[pa.Table]:
        """Yield the rows of table ``name`` from ``start`` on, in pieces."""
        for first in range(start, row_counts(self.ranges).get(name, 0), PIECE_ROWS):
            yield self._tables.table(name, None, start=first, end=first + PIECE_ROWS)

    def rollup(self, traces: Iterable[int] | None = None) -> pa.Table:
        """Return the ROLLUP of ``traces``, None for all."""
        return self._total if traces is None else self._rollup(traces)

    def unit_times(self, rollup: pa.Table, traces: Iterable[int] | None = None) -> pa.Table:
        """Return the time of each node on each device over ``traces``; see the protocol."""
        return step_times.unit_times(aggregates.histogram(self._tables.sources(traces), self._tables.devices), rollup)

    def times(self, traces: Iterable[int]) -> pa.Table:
        """Return the time of each node on each device in each of ``traces``."""
        return aggregates.times(self._tables.query_of_ops(traces), self._tables.devices)

    def executions(self, traces: Collection[int], columns: Sequence[str]) -> Executions:
        """Return the executions of ``traces``, with ``columns`` of `ops`."""
        condition = f" AND {is_in('trace', traces)}"
        return Executions(
            self._tables.table("ops", columns, condition),
            self._tables.table("traces", TRACE_COLUMNS, condition),
            self._tables.names,
            self.canonical_devices(),
            self._tables.table("allocations", None, condition),
            self._tables.table("output_memory", None, condition),
        )

    def canonical_devices(self) -> dict[int, int]:
        """Return node -> canonical device."""
        return dict(row_tuples(self._tables.canonical))

    def rows_of_traces(self, name: str, traces: Collection[int]) -> pa.Table:
        """Return the rows of table ``name`` of ``traces``, in order of arrival."""
        return self._tables.table(name, None, f" AND {is_in('trace', traces)}")

    def host_samples(self) -> pa.Table:
        """Return the samples of the job's host, from the time of the job."""
        return self._tables.table("host_samples", None)

    def archive(self) -> Iterator[bytes]:
        """Yield the job as one file: it is first copied into a folder."""
        from .copying import FolderTarget  # noqa: PLC0415  # it needs what writes a store
        from .reader import LocalJob  # noqa: PLC0415

        with tempfile.TemporaryDirectory(prefix="tfprof-") as folder:
            path = Path(folder, "store")
            FolderTarget(str(path)).add(self)
            yield from LocalJob(catalog.job_folder(path, self.info.uid), self.info).archive()

    def window_labels(self, streams: Collection[int]) -> dict[int, int]:
        """Return node -> one of its labels; ``streams``: devices of kernels."""
        return self.with_sql(partial(sql_queries.window_labels, streams=streams))

    def with_sql(self, action: Callable[[Sql], T]) -> T:
        """Return the result of ``action``, which runs SQL."""
        return action(Sql(self._tables.query, CLICKHOUSE))

    @cached_property
    def _total(self) -> pa.Table:
        return self._rollup(None)

    def _rollup(self, traces: Iterable[int] | None) -> pa.Table:
        rollup = aggregates.rollup(self._tables.sources(traces), self._tables.devices)
        size = pc.max(rollup["node"]).as_py() + 1 if rollup.num_rows else 0
        node, device = map(flat, self._tables.canonical.columns)
        return with_canonical(rollup, indexed_by_node(node, device, size))


class EngineStore:
    """The jobs in a database of ClickHouse."""

    def __init__(self, server: Server) -> None:
        """Open the store in the database of ``server``.

        StoreError as in `Server.query`, ``engine-version`` if the server is too old, and
        ``store-version`` if the tables are of another version.
        """
        self.server = server
        server.check()
        check_version(server)

    @property
    def address(self) -> str:
        """The URL of the store."""
        return self.server.address.text

    def jobs(self) -> list[EngineJob]:
        """Return all readable jobs, in the order in which they were opened."""
        return self.read()[0]

    def job(self, selector: str) -> EngineJob:
        """Return the job that ``selector`` means; errors as for `selectors.selected`."""
        if UID.fullmatch(selector) and (stored := self.stored(int(selector, 16))):  # without reading all jobs
            return EngineJob(self, stored)
        return selected(*self.read(), selector)

    def current(self, uid: int) -> JobInfo | None:
        """Return the content of the job file of job ``uid`` as it is now, None if there is none."""
        stored = self.stored(uid)
        return None if stored is None else stored.info

    def stored(self, uid: int) -> _StoredJob | None:
        """Return job ``uid``, None if it is not in the store; StoreError if it is damaged."""
        for job in self.read(f" WHERE job = '{uid:016x}'")[0]:
            return job.stored
        return None

    def part(self, info: JobInfo) -> EngineJob:
        """Return a reader of what is stored of the job ``info``, which may not be whole."""
        return EngineJob(self, _StoredJob(info, (), 0))

    def is_removed(self, uid: int) -> bool:
        """Whether the last change of job ``uid`` is its removal."""
        rows = self.server.query(f"SELECT {_LATEST.format('removed')} AS last FROM jobs WHERE job = '{uid:016x}'")  # noqa: S608
        return bool(rows["last"].to_pylist()[0])

    def save(self, info: JobInfo, tags: Sequence[str], stored: _StoredJob | None, *, is_removed: bool = False) -> None:
        """Store the content of a job file and the tags of the job, or that it is removed.

        This is the last change, also if the clock of the host that ``stored`` the job is ahead.
        """
        changed_ns = max(time.time_ns(), stored.changed_ns + 1 if stored is not None else 0)
        row = place_of(info) | {"changed_ns": changed_ns, "info": info.dump().decode()}
        row |= {"tags": list(map(_plain, tags)), "removed": int(is_removed)}
        self.server.insert("jobs", pa.Table.from_pylist([row], schema=JOBS))

    def remove(self, uids: Iterable[int]) -> None:
        """Remove the jobs ``uids``: for readers at once, and then their rows."""
        for uid in uids:
            stored = self.stored(uid)
            if stored is not None:
                self.save(stored.info, stored.tags, stored, is_removed=True)
            self.sweep(uid)

    def sweep(self, uid: int) -> None:
        """Delete the rows of job ``uid``, which no reader shows: it was removed, or never whole."""
        names = ("batches", *ROW_TABLES, "jobs")
        if cluster := self.server.cluster(self.server.address.database, "jobs"):
            for host in self.server.hosts(cluster):
                self.server.at(host).delete([f"{name}{PART}" for name in names], f"{uid:016x}")
        else:
            self.server.delete(names, f"{uid:016x}")

    def read(self, condition: str = "") -> tuple[list[EngineJob], list[DamagedJobError]]:
        """Return the readable jobs with ``condition``, and the error of each damaged one."""
        columns = ", ".join(f"{_LATEST.format(name)} AS last_{name}" for name in ("info", "tags"))
        rows = self.server.query(
            f"SELECT job, {columns}, max(changed_ns) AS last_ns FROM jobs{condition} "  # noqa: S608
            f"GROUP BY job HAVING {_LATEST.format('removed')} = 0"
        )
        jobs: list[EngineJob] = []
        errors: list[DamagedJobError] = []
        for job, data, texts, changed_ns in row_tuples(rows):
            uid = job.decode(errors="replace")
            try:
                info = _with_stale_state(_info(data, uid, self.address), changed_ns)
                tags = tuple(text.decode(errors="replace") for text in texts)
                jobs.append(EngineJob(self, _StoredJob(info, tags, changed_ns)))
            except StoreError as error:
                errors.append(DamagedJobError(error, uid))
        return sorted(jobs, key=lambda job: job.info.opened_ns), errors


def _info(data: bytes, uid: str, address: str) -> JobInfo:
    """Return the content of the job file ``data`` of job ``uid``; StoreError if it is damaged."""
    info = catalog.parse(data, f"job {uid} in {address}")
    if info.hex != uid:
        raise StoreError(f"job {uid} in {address} is damaged: it is that of job {info.hex}", "store-damaged")
    return info


def _with_stale_state(info: JobInfo, changed_ns: int) -> JobInfo:
    """Return ``info``, with state `stale` if the job is running but is not copied any more."""
    is_stale = info.state == catalog.RUNNING and time.time_ns() - changed_ns > STALE_NS
    return replace(info, state=catalog.STALE) if is_stale else info


def place_of(info: JobInfo) -> dict[str, Any]:
    """Return the columns that name the job and its owner in each row."""
    owner = _plain(str(info.identity.get("user") or ""))
    return {"job": info.hex.encode(), "owner": owner, "opened": max(0, min(info.opened_ns // 10**9, 0xFFFFFFFF))}


def _plain(text: str) -> str:
    """Return ``text`` without what UTF-8 lacks: an imported job may have half a surrogate pair."""
    return text.encode(errors="replace").decode()
