"""XSpace bytes of a profiler session to rows of `ops`, cut into steps by the spans that the job recorded."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
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


class StepSpan(NamedTuple):
    """One traced step: its number and when it ran (real time, ns)."""

    trace: int
    start_ns: int
    duration_ns: int


class Window(NamedTuple):
    """When a profiler session began (real time, ns) and the steps in it, in order of time."""

    start_ns: int
    steps: Sequence[StepSpan]


class Cut(NamedTuple):
    """OPS rows of a session, what became of each step, and how many op executions were in no step."""

    ops: pa.RecordBatch
    steps: list[Decoded]
    uncut: int


def xspace(data: bytes | memoryview, window: Window, interner: Interner) -> Cut:
    """Return the op executions of a session, each in the step in which it began.

    DecodeError when ``data`` is no XSpace or too much of one; then no name is left behind.
    """
    message = _parsed(data)
    steps, uncut = _by_step(executions(message, window.start_ns), window.steps)
    mark = interner.mark()
    ops: list[tuple[int, ...]] = []
    decoded = []
    try:
        for step, rows in zip(window.steps, steps, strict=True):
            base_ns = min((row.start_ns for row in rows), default=0)
            seen = reduce(or_, map(accelerator, {row.device for row in rows}), 0)
            decoded.append(Decoded(len(rows), base_ns, seen, None))
            ops.extend(_row(row, step.trace, base_ns, interner) for row in rows)
    except NamesFullError as error:
        interner.rollback(mark)
        raise DecodeError(error.args[0], error.slug) from error
    return Cut(from_rows(ops, "ops"), decoded, uncut)


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


def _by_step(found: Iterable[Execution], steps: Sequence[StepSpan]) -> tuple[list[list[Execution]], int]:
    """Return the executions of each step, and how many began in none."""
    starts = [step.start_ns for step in steps]
    rows: list[list[Execution]] = [[] for _ in steps]
    uncut = 0
    for row in found:
        at = bisect_right(starts, row.start_ns) - 1
        if at >= 0 and row.start_ns < min(starts[at] + steps[at].duration_ns, _MAX):
            rows[at].append(row)
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
