"""Writes the content of a user's files into the store as a job."""

import os
import pwd
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from ..store.catalog import IMPORTED
from ..store.job_import import new_job_writer
from ..store.schema import EVENTS
from ..store.writer import LocalJobWriter
from .profiler_run import ImportedRun
from .stacks import ImportedRows
from .steps import ImportedStep, StepTables, extent

#: Maximum rows of a graph per append, since attributes may be large.
_GRAPH_ROWS: Final = 2_000


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The content of the files of an import.

    ``node_rows``: further rows about the nodes by table, in pieces. ``facts``: entries for the
    job's identity. `op_log` tells whether the files have an op log, `slots` whether they have input
    slots.
    """

    name: str
    graph: pa.RecordBatch
    node_rows: Iterable[ImportedRows]
    steps: Iterator[ImportedStep]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of an import."""

    uid: int
    nodes: int
    steps: int


def store_job(store: Path, host: str, source: ImportSource, on_step: Callable[[ImportedStep], None]) -> ImportResult:
    """Write ``source`` into ``store`` as a job of state `imported`.

    ``on_step`` is called before each step is written. After any exception, no part of the job is
    left in the store.
    """
    with new_job_writer(store, host) as writer:
        for rows in source.node_rows:
            _append(writer, rows)
        for start in range(0, source.graph.num_rows, _GRAPH_ROWS):
            _append(writer, {"graph_nodes": pa.Table.from_batches([source.graph.slice(start, _GRAPH_ROWS)])})
        tables = StepTables()
        span: tuple[int, int] | None = None
        steps = odd_times = 0
        for step in source.steps:
            on_step(step)
            _append(writer, tables.rows(step))
            *step_span, odd = extent(step.message)
            span = _union(span, (step_span[0], step_span[1]))
            steps, odd_times = steps + 1, odd_times + odd
        if odd_times:
            _append(writer, {"events": _odd_times_event(odd_times)})
        start_ns, end_ns = span or (time.time_ns(),) * 2
        identity = {"name": source.name, "user": _user(), "host": host, "created_real_ns": start_ns}
        writer.set_identity({**identity, **source.facts})
        kind = layout.SPAN_NAMES[layout.RUN]
        writer.close(IMPORTED, {"t_ns": end_ns, "traced": steps, "counts": {kind: steps}, "odd_times": odd_times})
        return ImportResult(writer.info.uid, source.graph.num_rows, steps)


def store_run(store: Path, local_host: str, name: str, run: ImportedRun) -> ImportResult:
    """Write a file of TensorFlow's own profiler into ``store`` as a job of state `imported`.

    After any exception, no part of the job is left in the store.
    """
    with new_job_writer(store, local_host) as writer:
        for tables in run.tables:
            _append(writer, tables)
        identity = {"name": name, "user": _user(), "host": run.file.host, "created_real_ns": run.start_ns}
        writer.set_identity({**identity, "functions": dict(run.functions)})
        steps = sum(run.counts.values())
        writer.close(IMPORTED, {"t_ns": run.end_ns, "traced": steps, "counts": dict(run.counts)})
        return ImportResult(writer.info.uid, 0, steps)


def _odd_times_event(number: int) -> pa.Table:
    text = f"the job's times leave out {number:,} executions, whose times in the files cannot be right"
    return pa.Table.from_pylist(
        [{"t_ns": time.time_ns(), "slug": "odd-times", "text": text, "count": 1}], schema=EVENTS
    )


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _append(writer: LocalJobWriter, tables: Mapping[str, pa.Table | pa.RecordBatch]) -> None:
    writer.append(tables)
    writer.seal_if_due(time.monotonic())


def _union(span: tuple[int, int] | None, other: tuple[int, int]) -> tuple[int, int] | None:
    """Return the span from the first start to the last end; ``other`` is ignored if it is empty."""
    if not any(other):
        return span
    return other if span is None else (min(span[0], other[0]), max(span[1], other[1]))
