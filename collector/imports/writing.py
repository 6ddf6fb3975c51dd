"""What was read of a user's files as a job of the store."""

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
from ..store.job_import import staged
from ..store.writer import JobWriter
from .stacks import Rows
from .steps import Step, StepTables, extent

#: Rows of a graph that are appended at once: their attributes may be large.
_GRAPH_ROWS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Source:
    """A job as its files tell it; ``known``: rows of what is known besides the graph, bit by bit.

    ``facts`` go into its identity: `op_log` and `slots` where they say so.
    """

    name: str
    graph: pa.RecordBatch
    known: Iterable[Rows]
    steps: Iterator[Step]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Imported:
    """What was made of it."""

    uid: int
    nodes: int
    steps: int


def store_job(store: Path, host: str, source: Source, on_step: Callable[[Step], None]) -> Imported:
    """Write ``source`` into ``store`` as a job of state `imported`; ``on_step`` hears of each step before it is written.

    Whatever is raised meanwhile, nothing of the job is left in the store.
    """
    with staged(store, host) as writer:
        for rows in source.known:
            _append(writer, rows)
        for first in range(0, source.graph.num_rows, _GRAPH_ROWS):
            _append(writer, {"graph_nodes": pa.Table.from_batches([source.graph.slice(first, _GRAPH_ROWS)])})
        tables = StepTables()
        span: tuple[int, int] | None = None
        steps = 0
        for step in source.steps:
            on_step(step)
            _append(writer, tables.rows(step))
            span = _wider(span, extent(step.message))
            steps += 1
        begun, ended = span or (time.time_ns(),) * 2
        identity = {"name": source.name, "user": _user(), "host": host, "created_real_ns": begun}
        writer.identity({**identity, **source.facts})
        kind = layout.SPAN_NAMES[layout.RUN]
        writer.close(IMPORTED, {"t_ns": ended, "traced": steps, "counts": {kind: steps}})
        return Imported(writer.info.uid, source.graph.num_rows, steps)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _append(writer: JobWriter, tables: Mapping[str, pa.Table | pa.RecordBatch]) -> None:
    writer.append(tables)
    writer.seal_if_due(time.monotonic())


def _wider(span: tuple[int, int] | None, other: tuple[int, int]) -> tuple[int, int] | None:
    """Return the time from the first of both to the last of both; what has no times does not count."""
    if not any(other):
        return span
    return other if span is None else (min(span[0], other[0]), max(span[1], other[1]))
