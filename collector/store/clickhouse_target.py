"""Copies jobs into ClickHouse, also while they run. Each row is stored once."""

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ..errors import StoreError
from .catalog import MAY_CONTINUE, JobInfo
from .clickhouse_groups import aggregates
from .clickhouse_ranges import row_counts
from .clickhouse_reader import EngineJob, EngineStore, place_of
from .clickhouse_tables import BATCHES, CANONICAL, CANONICAL_NAME, GROUP_TABLES, PLACE, ROW_TABLES
from .columns import flat, pc, row_tuples
from .copying import PIECE_ROWS, Copied, copied_info, groups_of_traces, pieces
from .devices import Devices, device_rows
from .protocols import JobReader
from .rollup import sorted_by_node
from .schema import JOB_TABLES
from .segment import ROLLUP_NAME
from .writer import SEAL_ROWS

_DAY_NS = 86_400 * 10**9
#: Rows of other tables refer to names, so names come first. Ops and their traces are stored
#: together, so they come last.
_OTHER_TABLES = ("names", *sorted(JOB_TABLES.keys() - {"names", "ops", "traces"}))


class _Piece(NamedTuple):
    """Rows of a table, and the number of their indexes: of rows, or of traces in GROUP_TABLES."""

    rows: pa.Table
    size: int


_Pieces = dict[str, _Piece]


class _Batch(NamedTuple):
    """A batch that grows: its number, its first index, its indexes as in _Piece, and bytes."""

    number: int
    first: int
    rows: int = 0
    sent: int = 0


class EngineTarget:
    """A store in ClickHouse that takes copies of jobs."""

    takes_running = True

    def __init__(self, store: EngineStore) -> None:
        """Copy into ``store``."""
        self._store = store
        self.address = store.address
        self._keep_ns = store.server.keep_days() * _DAY_NS
        self._batches: dict[tuple[int, str], _Batch] = {}
        self._tags: dict[int, tuple[str, ...]] = {}  # of the jobs' folders, as they were last copied

    def has(self, uid: int) -> bool:
        """Whether job ``uid`` is there as a whole."""
        stored = self._store.stored(uid)
        return stored is not None and stored.info.state not in MAY_CONTINUE

    @property
    def oldest_ns(self) -> int:
        """The server removes jobs that were opened before (`--keep-days`); 0: none."""
        return time.time_ns() - self._keep_ns if self._keep_ns else 0

    def add(self, job: JobReader) -> Copied:
        """Store the rows of ``job`` that are not there yet, then its job file and tags.

        The job may still run. StoreError if the rows cannot be stored.
        The rows of a piece are first inserted, then listed: interrupted inserts have no effect.
        """
        try:
            return job.on_one_snapshot(self._add)
        except (OverflowError, ValueError) as error:  # the job does not end the copies of all others
            text = f"job {job.info.hex} is damaged: {type(error).__name__} {error}"
            raise StoreError(text, "store-damaged") from None

    def _add(self, job: JobReader) -> Copied:
        uid, place = job.info.uid, place_of(job.info)
        if self._store.is_removed(uid):  # complete a removal that was interrupted
            self._store.sweep(uid)
        stored = self._store.part(job.info)
        counts = row_counts(stored.ranges)
        earlier = _row_total(counts)
        names, unlisted = set[str](), 0
        for tables in self._new_pieces(job, stored):
            for name, piece in tables.items():
                self._insert(uid, place, name, counts.get(name, 0), piece)
                counts[name] = counts.get(name, 0) + piece.size
                unlisted += piece.rows.num_rows
            names |= tables.keys()
            if unlisted >= PIECE_ROWS:  # an interrupted copy continues here
                self._list(uid, place, names)
                names, unlisted = set(), 0
        if names:
            self._list(uid, place, names)
        self._save(copied_info(job.info, counts), job.tags())
        if job.info.state not in MAY_CONTINUE:
            self._batches = {key: batch for key, batch in self._batches.items() if key[0] != uid}
        return Copied(_row_total(counts), earlier)

    def _save(self, info: JobInfo, tags: tuple[str, ...]) -> None:
        """Store the job file; tags that were set in the target stay until ``tags`` change."""
        stored = self._store.stored(info.uid)
        are_known = stored is not None and self._tags.get(info.uid) == tags
        self._store.save(info, stored.tags if stored is not None and are_known else tags, stored)
        self._tags[info.uid] = tags

    def _new_pieces(self, job: JobReader, stored: EngineJob) -> Iterator[_Pieces]:
        """Yield the rows that are not ``stored`` yet, by table."""
        counts = row_counts(stored.ranges)
        if counts.get("ops") and not counts.get("traces"):
            text = f"a part of job {job.info.hex} in {self.address} has another order: copy into another database"
            raise StoreError(text, "copy-differs")
        for name in _OTHER_TABLES:
            yield from (_pieces({name: rows}) for rows in pieces(job, name, counts.get(name, 0)) if rows.num_rows)
        canonical = job.canonical_devices()
        if len(canonical) > counts.get(CANONICAL_NAME, 0):
            known = stored.canonical_devices()
            new = {node: device for node, device in canonical.items() if node not in known}
            yield _pieces({CANONICAL_NAME: pa.table([list(new), list(new.values())], schema=CANONICAL)})
        yield from _new_traces(job, counts.get("traces", 0), counts.get(ROLLUP_NAME, 0), canonical)

    def _insert(self, uid: int, place: Mapping[str, Any], name: str, first: int, piece: _Piece) -> None:
        """Insert ``piece`` into the batch that ends before index ``first``, or into a new one."""
        # A batch whose insert failed may have rows that are not listed, so no rows are added to it.
        batch = self._batches.pop((uid, name), None)
        if batch is None or batch.first + batch.rows != first:
            batch = _Batch(secrets.randbits(63), first)
        rows = piece.rows
        if name not in GROUP_TABLES:
            rows = rows.append_column("row", pa.array(range(first, first + piece.size), pa.uint64()))
        for column, value in (*place.items(), ("batch", batch.number)):
            rows = rows.append_column(column, pa.repeat(pa.scalar(value, PLACE.field(column).type), rows.num_rows))
        sent = self._store.server.insert(name, rows) if rows.num_rows else 0
        self._batches[uid, name] = batch._replace(rows=batch.rows + piece.size, sent=batch.sent + sent)

    def _list(self, uid: int, place: Mapping[str, Any], names: Iterable[str]) -> None:
        """List the batches of the tables ``names``, all at once, as they are now."""
        batches = {name: self._batches.pop((uid, name)) for name in names}
        rows = [
            {
                **place,
                "name": name,
                "first": batch.first,
                "batch": batch.number,
                "rows": batch.rows,
                "bytes": batch.sent,
            }
            for name, batch in batches.items()
        ]
        self._store.server.insert("batches", pa.Table.from_pylist(rows, schema=BATCHES))
        self._batches |= {(uid, name): batch for name, batch in batches.items()}


def _pieces(tables: Mapping[str, pa.Table]) -> _Pieces:
    return {name: _Piece(rows, rows.num_rows) for name, rows in tables.items()}


def _row_total(counts: Mapping[str, int]) -> int:
    """Return the rows of the tables of the job itself."""
    return sum(count for name, count in counts.items() if name in JOB_TABLES)


def _new_traces(job: JobReader, start: int, summed: int, canonical: Mapping[int, int]) -> Iterator[_Pieces]:
    """Yield the traces from index ``start`` on, in order of arrival, with their ops.

    Ops are sorted by trace, node and device: sealed ones have lost the order of arrival. A part of
    the traces from index ``summed`` on is yielded with its aggregates as soon as it has enough ops,
    or when the job has ended. So all copies of a job have the same groups.
    """
    traces = pa.concat_tables([ROW_TABLES["traces"].empty_table(), *pieces(job, "traces", summed)])
    has_ended, first = job.info.state not in MAY_CONTINUE, summed
    if not traces.num_rows or (start == summed + traces.num_rows and not has_ended):
        return
    devices = Devices(device_rows(job.table("names")))
    for numbers in groups_of_traces(row_tuples(traces, "trace", "rows")):
        group = traces.slice(first - summed, len(numbers))
        known = min(max(0, start - first), len(numbers))
        is_whole = has_ended or pc.sum(group["rows"]).as_py() >= SEAL_ROWS
        ops = job.rows_of_traces("ops", numbers if is_whole else numbers[known:])
        ops = sorted_by_node(ops, devices) if ops.num_rows else ops
        tables = _pieces({"ops": _in_order(ops, numbers[known:]), "traces": group.slice(known)})
        sums = aggregates(ops, group, first, devices, canonical) if is_whole else {}
        yield {
            **{name: piece for name, piece in tables.items() if piece.size},
            **{name: _Piece(rows, len(numbers)) for name, rows in sums.items()},
        }
        first += len(numbers)


def _in_order(ops: pa.Table, traces: Sequence[int]) -> pa.Table:
    """Return the ops of ``traces``, in the order of these."""
    places = pc.index_in(flat(ops["trace"]), value_set=pa.array(traces, pa.uint32()))
    return ops.take(pc.array_sort_indices(places).slice(0, len(places) - places.null_count))
