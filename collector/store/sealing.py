"""From a write-ahead log to segments, in an order that may be cut short anywhere."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tfprof.collector.store import catalog, durable, segment
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.store.devices import only
from tfprof.collector.store.rollup import canonical_of, merge, rollup
from tfprof.collector.store.schema import JOB_TABLES, NAMES
from tfprof.collector.store.snapshot import Snapshot
from tfprof.collector.store.wal import Contents, Rows


@dataclass
class Tail:
    """What a writer remembers of a job beside its record: the log's sums, and the names of the job's devices."""

    acked: dict[int, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    appends: int = 0
    devices: pa.Table = field(default_factory=NAMES.empty_table)

    @classmethod
    def of_folder(cls, folder: Path) -> "Tail":
        """Return what ``folder`` says, its log included."""
        snapshot = Snapshot(folder)
        tail = cls(dict(snapshot.info.acked), devices=only(snapshot.sealed("names")))
        for contents in snapshot.tail:
            for name in JOB_TABLES:
                tail.count(name, contents.table(name))
            for append in contents.appends:
                tail.done(append.about, append.last)
        return tail

    def add(self, tables: Mapping[str, Rows], about: int, last: int) -> None:
        """Take note of an append."""
        for name, rows in tables.items():
            self.count(name, rows)
        self.done(about, last)

    def count(self, name: str, rows: Rows) -> None:
        """Take note of ``rows`` of table ``name``."""
        if not rows.num_rows:
            return
        self.rows[name] = self.rows.get(name, 0) + rows.num_rows
        if name == "names":
            table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
            self.devices = pa.concat_tables([self.devices, only(table)])

    def done(self, about: int, last: int) -> None:
        """Take note of what an append completed."""
        self.appends += 1
        if about:
            self.acked[about] = last

    def clear(self) -> None:
        """Forget the log, which is sealed."""
        self.rows, self.appends = {}, 0


def seal(folder: Path, info: JobInfo, tail: Tail, contents: Contents) -> JobInfo:
    """Write ``contents`` as the generation after the last sealed one and return the job's record with it.

    Only the last step, the record's replacement, makes the generation count; a StoreError before it changes nothing.
    """
    generation = info.sealed + 1
    rows = dict(info.rows)
    for name in JOB_TABLES:
        table = contents.table(name)
        if table.num_rows:
            rows[name] = rows.get(name, 0) + table.num_rows
            _write(folder, name, generation, table)
    total = _write_rollups(folder, info, tail, contents)
    with durable.told(folder):
        durable.sync_folder(folder)
    sealed = replace(info, sealed=generation, total=total, rows=rows, acked=dict(tail.acked))
    catalog.save(folder, sealed)
    if info.total not in (total, -1):
        with contextlib.suppress(OSError):  # removed by the next start then
            (folder / segment.file_name(segment.TOTAL_NAME, info.total)).unlink()
    return sealed


def _write_rollups(folder: Path, info: JobInfo, tail: Tail, contents: Contents) -> int:
    """Write rollup and total of the generation; return the generation of the total that is then in force."""
    ops = contents.table("ops")
    if not ops.num_rows:
        return info.total
    generation = info.sealed + 1
    before = _total(folder, info)
    table, _ = rollup(ops, contents.table("traces"), tail.devices, canonical_of(before))
    span = pc.min_max(ops["trace"]).as_py()
    _write(folder, segment.ROLLUP_NAME, generation, table, {"first_trace": span["min"], "last_trace": span["max"]})
    _write(folder, segment.TOTAL_NAME, generation, merge(before, table))
    return generation


def _total(folder: Path, info: JobInfo) -> pa.Table:
    if info.total < 0:
        return segment.SCHEMAS[segment.TOTAL_NAME].empty_table()
    path = folder / segment.file_name(segment.TOTAL_NAME, info.total)
    with durable.told(path):
        return segment.read(path, segment.TOTAL_NAME)


def _write(folder: Path, name: str, generation: int, table: pa.Table, metadata: Mapping[str, int] | None = None) -> None:
    path = folder / segment.file_name(name, generation)
    with durable.told(path):
        durable.replace(path, segment.encode(name, table, metadata))
