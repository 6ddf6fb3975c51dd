"""XSpace bytes of a profiler session to rows of `ops`, cut by the step that was recorded."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

import pyarrow as pa
from google.protobuf.message import DecodeError as ParseError
from tfprof.collector.errors import DecodeError
from tfprof.collector.ingest.columns import from_rows
from tfprof.collector.ingest.decode import Decoded
from tfprof.collector.ingest.executions import Execution, executions
from tfprof.collector.ingest.interner import Interner, NamesFullError
from tfprof.collector.ingest.proto.xplane_pb2 import XSpace
from tfprof.collector.store.devices import accelerator
from tfprof.collector.store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID

#: Events and bytes of one session that are looked at; more is refused before it is taken apart.
EVENTS_MAX: Final = 1 << 20
BYTES_MAX: Final = 64 << 20

_MAX: Final = (1 << 63) - 1


class Window(NamedTuple):
    """When a profiler session began, and the step in it: its trace number, start and duration; real time, ns."""

    start_ns: int
    trace: int
    step_start_ns: int
    step_duration_ns: int


class Cut(NamedTuple):
    """OPS rows of a session's step, what became of it, and how many op executions were not in it."""

    ops: pa.RecordBatch
    step: Decoded
    uncut: int


def xspace(data: bytes | memoryview, window: Window, interner: Interner) -> Cut:
    """Return the op executions of a session that began in its step.

    DecodeError when ``data`` is no XSpace or too much of one; then no name is left behind.
    """
    rows, uncut = _of_step(executions(_parsed(data), window.start_ns), window)
    base_ns = min((row.start_ns for row in rows), default=0)
    seen = reduce(or_, map(accelerator, {row.device for row in rows}), 0)
    mark = interner.mark()
    try:
        ops = [_row(row, window.trace, base_ns, interner) for row in rows]
    except NamesFullError as error:
        interner.rollback(mark)
        raise DecodeError(error.args[0], error.slug) from error
    return Cut(from_rows(ops, "ops"), Decoded(len(rows), base_ns, seen, None), uncut)


def _parsed(data: bytes | memoryview) -> XSpace:
    if len(data) > BYTES_MAX:
        raise DecodeError(f"a profiler session of {len(data)} bytes, more than {BYTES_MAX}")
    message = XSpace()
    try:
        message.ParseFromString(bytes(data))
    except ParseError as error:
        raise DecodeError("not an XSpace") from error
    events = sum(len(line.events) for plane in message.planes for line in plane.lines)
    if events > EVENTS_MAX:
        raise DecodeError(f"a profiler session of {events} events, more than {EVENTS_MAX}")
    return message


def _of_step(found: Iterable[Execution], window: Window) -> tuple[list[Execution], int]:
    """Return the executions that began in the step, and how many did not."""
    end_ns = min(window.step_start_ns + window.step_duration_ns, _MAX)
    rows: list[Execution] = []
    uncut = 0
    for row in found:
        if window.step_start_ns <= row.start_ns < end_ns:
            rows.append(row)
        else:
            uncut += 1
    return rows, uncut


def _row(row: Execution, trace: int, base_ns: int, interner: Interner) -> tuple[int, ...]:
    """Return a row of OPS."""
    memory = row.memory
    return (
        trace,
        interner.id(NODE, row.node),
        interner.id(DEVICE, row.device),
        interner.id(LABEL, row.label),
        row.thread,
        min(row.start_ns - base_ns, _MAX),
        0,
        min(row.own_ns, _MAX),
        0,
        0,
        0,
        0,
        min(memory.total, _MAX),
        min(memory.peak, _MAX),
        max(-_MAX, min(memory.live, _MAX)),
        interner.id(ALLOCATOR, memory.allocator) if memory.allocator else NONE_ID,
        min(memory.in_use, _MAX),
        min(memory.output, _MAX),
        NONE_ID,
        0,
        0,
    )
