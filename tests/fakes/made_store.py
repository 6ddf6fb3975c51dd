"""Stores with invented jobs: a test gives the rows, and the real writer writes them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tfprof.collector.decoders.decode import decoder
from tfprof.collector.decoders.graphdef import graph_nodes
from tfprof.collector.decoders.interner import Interner
from tfprof.collector.store import catalog, schema
from tfprof.collector.store.reader import LocalJob
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout

HOST = "node7"
SECOND = 10**9
MS = 10**6
START_NS = 1_700_000_000 * SECOND
IDENTITY = {
    "name": "train.py",
    "user": "ada",
    "host": HOST,
    "pid": 4711,
    "framework": "tensorflow",
    "framework_version": "2.21.0",
    "created_real_ns": START_NS,
    "launch": "00000000000000aa",
}


def raise_error(_uid: int, error: Exception) -> None:
    """Raise an error of a job in `LocalStoreWriter.tick`."""
    raise error


def span(kind: int, ordinal: int, start_ms: float, ms: float, **other: int) -> dict[str, int]:
    """Return a row of SPANS that starts ``start_ms`` after the job's start and takes ``ms``."""
    total = int(ms * MS)
    row = {"kind": kind, "flags": 0, "ordinal": ordinal, "count": 1, "total_ns": total, "min_ns": total}
    row |= {"max_ns": total, "key": 0, "thread": 1, "parent": 0, "start_ns": START_NS + int(start_ms * MS)}
    return row | other


def trace(
    number: int, step: int, rows: int, base_ns: int, source: int = layout.RUN_METADATA, accelerator: int = 0
) -> dict[str, int]:
    """Return a row of TRACES."""
    times = {"start_ns": START_NS, "duration_ns": MS, "base_ns": base_ns}
    return (
        {"trace": number, "source": source, "kind": layout.RUN, "step": step, "key": 0, "thread": 1}
        | times
        | {
            "rows": rows,
            "raw_bytes": 100,
            "accelerator": accelerator,
        }
    )


def rows(table: str, values: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return ``values`` as a table of the store; columns that a value leaves out are 0 or empty."""
    table_schema = schema.JOB_TABLES[table]
    full_rows = [
        {name: value.get(name, _empty(table_schema.field(name).type)) for name in table_schema.names}
        for value in values
    ]
    return pa.Table.from_pylist(full_rows, schema=table_schema)


def _empty(kind: Any) -> Any:
    for is_kind, value in ((pa.types.is_string, ""), (pa.types.is_binary, b""), (pa.types.is_list, [])):
        if is_kind(kind):
            return value
    return False if pa.types.is_boolean(kind) else 0


def host_samples(store: Path, host: str) -> pa.Table:
    """Return the stored samples of ``host``."""
    folder = catalog.host_folder(store, host)
    return LocalJob(folder, catalog.load(folder)).table("host_samples")


def trace_tables(graph: bytes, messages: Sequence[bytes]) -> dict[str, pa.Table | pa.RecordBatch]:
    """Return the tables that a graph and the RunMetadata of steps 0, 1, … decode to."""
    interner = Interner()
    steps = decoder("auto").run_metadata(messages, range(len(messages)), interner)
    return {
        "ops": pa.Table.from_batches([steps.ops]),
        "allocations": pa.Table.from_batches([steps.allocations.on_gpus]),
        "memory_changes": pa.Table.from_batches([steps.allocations.others]),
        "block_addresses": steps.allocations.addresses,
        "traces": rows(
            "traces",
            [
                trace(number, number, result.rows, result.base_ns, accelerator=result.accelerator)
                for number, result in enumerate(steps.results)
            ],
        ),
        "names": interner.new_names(),
        "graph_nodes": graph_nodes(graph, 0),
    }


def write_job(
    store: Path,
    uid: int,
    tables: Mapping[str, pa.Table | pa.RecordBatch],
    *,
    state: str | None = "exited",
    identity: Mapping[str, Any] | None = None,
    counters: Mapping[str, Any] | None = None,
    end: Mapping[str, Any] | None = None,
) -> None:
    """Write one job into ``store``.

    With ``state`` None the job keeps running, and its rows stay in the log.
    """
    writer = LocalStoreWriter(store, HOST)
    try:
        job = writer.job(uid)
        job.set_identity({**IDENTITY, **(identity or {})})
        job.set_counters(dict(counters or {}))
        job.append(tables)
        if state is not None:
            job.close(state, {"t_ns": START_NS + 60 * SECOND, **(end or {})})
    finally:
        writer.close()


def write_host(store: Path, samples: Sequence[Mapping[str, Any]]) -> None:
    """Write samples of the host HOST into ``store``."""
    writer = LocalStoreWriter(store, HOST)
    try:
        writer.host(HOST).append({"host_samples": rows("host_samples", samples)})
    finally:
        writer.close()
