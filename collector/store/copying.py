"""Copies jobs from one store to another, with all rows and the same uid."""

import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from . import catalog
from .archive import samples_of_job
from .catalog import JobInfo
from .columns import flat, pc, row_tuples
from .devices import Devices, device_rows
from .job_import import own_collector, staged_job
from .node_keys import pack
from .protocols import JobReader
from .schema import JOB_TABLES
from .writer import SEAL_ROWS, LocalJobWriter

#: Maximum number of rows that are written at once.
PIECE_ROWS: Final = 100_000


class Copied(NamedTuple):
    """The rows of a copied job, and how many of them were there before."""

    rows: int
    earlier: int


def copied_info(info: JobInfo, rows: Mapping[str, int]) -> JobInfo:
    """Return the job file of a copy with these numbers of ``rows``, without generations."""
    kept = {name: count for name, count in rows.items() if name in JOB_TABLES and count}
    return replace(info, rows=kept, sealed=-1, total=-1, parts={}, removed={})


def pieces(job: JobReader, name: str, start: int = 0) -> Iterator[pa.Table]:
    """Yield the rows of table ``name`` from row ``start`` on, in pieces."""
    if name == "host_samples":  # those from the time of the job
        tables = iter([samples_of_job(job.info, job.host_samples()).slice(start)])
    else:
        tables = job.pieces(name, start)
    for table in tables:
        for first in range(0, table.num_rows, PIECE_ROWS):
            yield table.slice(first, PIECE_ROWS)


class FolderTarget:
    """A store folder that takes copies of jobs; a copy that is interrupted leaves nothing."""

    takes_running = False  # the rows of a running job are not in their final order
    oldest_ns = 0

    def __init__(self, path: str) -> None:
        """Copy into the store at ``path``, which is created when a job is copied."""
        self._path = Path(path)
        self.address = path

    def has(self, uid: int) -> bool:
        """Whether job ``uid`` is there."""
        return catalog.job_folder(self._path, uid).exists()

    def add(self, job: JobReader) -> Copied:
        """Store an ended ``job`` that is not there, and its tags; StoreError if that fails."""
        info, rows = job.info, 0
        with staged_job(self._path) as folder:
            writer = LocalJobWriter(folder, info.uid, own_collector(socket.gethostname()))
            try:
                for name in JOB_TABLES.keys() - {"ops", "traces"}:
                    for piece in pieces(job, name):
                        writer.append({name: piece})
                        rows += piece.num_rows
                for tables in _generations(job):
                    writer.append(tables)
                    writer.seal()
                    rows += sum(table.num_rows for table in tables.values())
                writer.close(info.state, info.end)
            finally:
                writer.release()
            stored = writer.info
            copied = copied_info(info, stored.rows)
            catalog.save(folder, replace(copied, sealed=stored.sealed, total=stored.total, parts=stored.parts))
            if tags := job.tags():
                catalog.save_tags(folder, tags)
        return Copied(rows, 0)


def _generations(job: JobReader) -> Iterator[dict[str, pa.Table]]:
    """Yield the traces in ascending order with their ops, as many at once as a collector seals.

    Ops on the canonical device of a node come first, since the first device of a node becomes its
    canonical device.
    """
    traces, devices = job.table("traces"), Devices(device_rows(job.table("names")))
    canonical = job.canonical_devices()
    keys = pack(pa.array(list(canonical), pa.uint32()), pa.array(list(canonical.values()), pa.uint32()))
    for numbers in groups_of_traces(sorted(row_tuples(traces, "trace", "rows"))):
        ops = job.rows_of_traces("ops", numbers)
        is_canonical = pc.is_in(pack(flat(ops["node"]), devices.unified(flat(ops["device"]))), value_set=keys)
        ordered = pa.concat_tables([ops.filter(is_canonical), ops.filter(pc.invert(is_canonical))])
        wanted: Any = pa.array(numbers, pa.uint32())
        yield {"traces": traces.filter(pc.is_in(traces["trace"], value_set=wanted)), "ops": ordered}


def groups_of_traces(traces: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield the numbers of ``traces`` in groups: with as many ops as a collector seals at once.

    ``traces``: numbers of traces, with their numbers of ops.
    """
    group, count = list[int](), 0
    for number, rows in traces:
        group.append(number)
        count += rows
        if count >= SEAL_ROWS:
            yield group
            group, count = [], 0
    if group:
        yield group
