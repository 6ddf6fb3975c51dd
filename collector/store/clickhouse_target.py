"""Copies jobs into ClickHouse, in batches that are stored once."""

import secrets
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..errors import StoreError
from .clickhouse_reader import EngineStore, place_of
from .clickhouse_tables import BATCHES, CANONICAL, CANONICAL_NAME, PLACE, ROW_TABLES
from .columns import row_tuples
from .copying import Copied, copied_info, pieces
from .protocols import JobReader


class EngineTarget:
    """A store in ClickHouse that takes copies of jobs."""

    def __init__(self, store: EngineStore) -> None:
        """Copy into ``store``."""
        self._store = store
        self.address = store.address

    def has(self, uid: int) -> bool:
        """Whether job ``uid`` is there as a whole."""
        return self._store.stored(uid) is not None

    def add(self, job: JobReader) -> Copied:
        """Store ``job``; a job of which a part is there is continued.

        A batch is listed after it was inserted, and the job after all its batches.
        """
        info = copied_info(job)
        if self._store.is_removed(info.uid):  # complete a removal that was interrupted
            self._store.sweep(info.uid)
        place, stored, rows = place_of(info), self._stored_rows(info.hex), 0
        for name, number, piece in _all_pieces(job):
            rows += piece.num_rows
            known = stored.get((name, number))
            if known is None:
                self._insert(place, name, number, piece)
            elif known != piece.num_rows:
                raise StoreError(
                    f"a part of job {info.hex} in {self.address} is of another copy: batch {number} of {name} has "
                    f"{known} rows in place of {piece.num_rows}. Copy into another database",
                    "copy-differs",
                )
        self._store.save(info, job.tags())
        return Copied(rows, sum(stored.values()))

    def _stored_rows(self, job: str) -> dict[tuple[str, int], int]:
        """Return (table, number) -> rows of the batches that are stored."""
        rows = self._store.server.query(
            f"SELECT name, number, max(rows) AS size FROM batches WHERE job = '{job}' GROUP BY name, number"  # noqa: S608
        )
        return {(name.decode(errors="replace"), number): size for name, number, size in row_tuples(rows)}

    def _insert(self, place: dict[str, Any], name: str, number: int, piece: pa.Table) -> None:
        """Insert the rows of a piece as a new batch, then list the batch."""
        batch = secrets.randbits(63)
        size = piece.num_rows
        values = [*place.values(), batch]
        columns: Any = [pa.repeat(pa.scalar(value, PLACE.field(at).type), size) for at, value in enumerate(values)]
        table = pa.table([*columns, *piece.columns], [*PLACE.names[:-1], *piece.column_names])
        sent = self._store.server.insert(name, table)
        row = place | {"name": name, "number": number, "batch": batch, "rows": size, "bytes": sent}
        self._store.server.insert("batches", pa.Table.from_pylist([row], schema=BATCHES))


def _all_pieces(job: JobReader) -> Iterator[tuple[str, int, pa.Table]]:
    """Yield (table, number, rows) of each batch; the rows begin with the column `row`."""
    canonical = job.canonical_devices()
    for name in ROW_TABLES:
        if name == CANONICAL_NAME:
            nodes = pa.table([list(canonical), list(canonical.values())], schema=CANONICAL)
            tables: Iterator[pa.Table] = iter([nodes] if canonical else [])
        else:
            tables = pieces(job, name)
        first = 0
        for number, table in enumerate(tables):
            numbers: Any = pa.array(range(first, first + table.num_rows), pa.uint64())
            first += table.num_rows
            yield name, number, pa.table([numbers, *table.columns], ["row", *table.column_names])
