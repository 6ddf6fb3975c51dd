"""Copies jobs into ClickHouse, also while they run. Each row is stored once."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from ..errors import StoreError
from .catalog import MAY_CONTINUE
from .clickhouse_ranges import row_counts
from .clickhouse_reader import EngineJob, EngineStore, place_of
from .clickhouse_tables import BATCHES, CANONICAL, CANONICAL_NAME, PLACE, ROW_TABLES
from .columns import flat, pc, row_tuples
from .copying import PIECE_ROWS, Copied, copied_info, groups_of_traces, pieces
from .devices import Devices, device_rows
from .protocols import JobReader
from .rollup import sorted_by_node

#: Rows of other tables refer to names, so names come first. Ops and their traces are stored
#: together, so they come last.
_OTHER_TABLES = ("names", *sorted(ROW_TABLES.keys() - {"names", "ops", "traces", CANONICAL_NAME}))


class _Batch(NamedTuple):
    """A batch that grows: its number, the index of its first row, its rows and bytes."""

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
        self._batches: dict[tuple[int, str], _Batch] = {}

    def has(self, uid: int) -> bool:
        """Whether job ``uid`` is there as a whole."""
        stored = self._store.stored(uid)
        return stored is not None and stored.info.state not in MAY_CONTINUE

    def add(self, job: JobReader) -> Copied:
        """Store the rows of ``job`` that are not there yet, then its job file and tags.

        The rows of a piece are first inserted, then listed: interrupted inserts have no effect.
        """
        return job.on_one_snapshot(self._add)

    def _add(self, job: JobReader) -> Copied:
        uid, place = job.info.uid, place_of(job.info)
        if self._store.is_removed(uid):  # complete a removal that was interrupted
            self._store.sweep(uid)
        stored = self._store.part(job.info)
        counts = row_counts(stored.ranges)
        earlier = sum(counts.values())
        names, unlisted = set[str](), 0
        for tables in self._new_pieces(job, stored):
            for name, rows in tables.items():
                self._insert(uid, place, name, counts.get(name, 0), rows)
                counts[name] = counts.get(name, 0) + rows.num_rows
                unlisted += rows.num_rows
            names |= tables.keys()
            if unlisted >= PIECE_ROWS:  # an interrupted copy continues here
                self._list(uid, place, names)
                names, unlisted = set(), 0
        if names:
            self._list(uid, place, names)
        self._store.save(copied_info(job.info, counts), job.tags())
        if job.info.state not in MAY_CONTINUE:
            self._batches = {key: batch for key, batch in self._batches.items() if key[0] != uid}
        return Copied(sum(counts.values()), earlier)

    def _new_pieces(self, job: JobReader, stored: EngineJob) -> Iterator[dict[str, pa.Table]]:
        """Yield the rows that are not ``stored`` yet, by table."""
        counts = row_counts(stored.ranges)
        if counts.get("ops") and not counts.get("traces"):
            text = f"a part of job {job.info.hex} in {self.address} has another order: copy into another database"
            raise StoreError(text, "copy-differs")
        for name in _OTHER_TABLES:
            yield from ({name: piece} for piece in pieces(job, name, counts.get(name, 0)) if piece.num_rows)
        canonical = job.canonical_devices()
        if len(canonical) > counts.get(CANONICAL_NAME, 0):
            known = stored.canonical_devices()
            new = {node: device for node, device in canonical.items() if node not in known}
            yield {CANONICAL_NAME: pa.table([list(new), list(new.values())], schema=CANONICAL)}
        yield from _new_traces(job, counts.get("traces", 0))

    def _insert(self, uid: int, place: Mapping[str, Any], name: str, first: int, rows: pa.Table) -> None:
        """Insert ``rows`` into the batch that ends before index ``first``, or into a new one."""
        # A batch whose insert failed may have rows that are not listed, so no rows are added to it.
        batch = self._batches.pop((uid, name), None)
        if batch is None or batch.first + batch.rows != first:
            batch = _Batch(secrets.randbits(63), first)
        size = rows.num_rows
        values = [*place.values(), batch.number]
        columns: Any = [pa.repeat(pa.scalar(value, PLACE.field(at).type), size) for at, value in enumerate(values)]
        numbers: Any = pa.array(range(first, first + size), pa.uint64())
        table = pa.table([*columns, numbers, *rows.columns], [*PLACE.names, *rows.column_names])
        sent = self._store.server.insert(name, table)
        self._batches[uid, name] = batch._replace(rows=batch.rows + size, sent=batch.sent + sent)

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


def _new_traces(job: JobReader, start: int) -> Iterator[dict[str, pa.Table]]:
    """Yield the traces from index ``start`` on, in order of arrival, with their ops.

    Ops are sorted by trace, node and device: sealed ones have lost the order of arrival.
    """
    traces = pa.concat_tables([ROW_TABLES["traces"].empty_table(), *pieces(job, "traces", start)])
    devices = Devices(device_rows(job.table("names"))) if traces.num_rows else None
    first = 0
    for numbers in groups_of_traces(row_tuples(traces, "trace", "rows")):
        ops = job.rows_of_traces("ops", numbers)
        tables = {"traces": traces.slice(first, len(numbers))}
        if ops.num_rows and devices is not None:
            ops = sorted_by_node(ops, devices)
            places = pc.index_in(flat(ops["trace"]), value_set=pa.array(numbers, pa.uint32()))
            tables = {"ops": ops.take(pc.array_sort_indices(places)), **tables}
        yield tables
        first += len(numbers)
