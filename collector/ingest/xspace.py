"""XSpace bytes of a profiler session to rows of `ops`, cut into steps by the spans that the job recorded."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import Final, NamedTuple

import pyarrow as pa
from google.protobuf.message import DecodeError as ParseError
from tfprof.collector.errors import DecodeError
from tfprof.collector.ingest.columns import from_rows
from tfprof.collector.ingest.decode import Decoded
from tfprof.collector.ingest.executions import Execution, executions
from tfprof.collector.ingest.interner import Interner, NamesFullError
from tfprof.collector.ingest.messages import CutShortError, parts, without
from tfprof.collector.ingest.proto.xplane_pb2 import XLine, XPlane, XSpace
from tfprof.collector.store.devices import accelerator
from tfprof.collector.store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID, OPS

#: Events and bytes of one session that are looked at; more is refused before it is taken apart.
EVENTS_MAX: Final = 1 << 20
BYTES_MAX: Final = 64 << 20

_MAX: Final = (1 << 63) - 1
_LINES: Final = XPlane.LINES_FIELD_NUMBER
#: Rows of Python numbers take ten times what they do as columns.
_ROWS_AT_ONCE: Final = 16_384


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

    ops: pa.Table
    steps: list[Decoded]
    uncut: int


def xspace(data: bytes | memoryview, window: Window, interner: Interner) -> Cut:
    """Return the op executions of a session, each in the step in which it began.

    DecodeError when ``data`` is no XSpace or too much of one; then no name is left behind.
    """
    try:
        steps, uncut = _by_step(executions(_Session(data), window.start_ns), window.steps)
    except (CutShortError, ParseError) as error:
        raise DecodeError("not an XSpace") from error
    mark = interner.mark()
    batches: list[pa.RecordBatch] = []
    decoded = []
    try:
        for step, rows in zip(window.steps, steps, strict=True):
            base_ns = min((row.start_ns for row in rows), default=0)
            seen = reduce(or_, map(accelerator, {row.device for row in rows}), 0)
            decoded.append(Decoded(len(rows), base_ns, seen, None))
            for first in range(0, len(rows), _ROWS_AT_ONCE):
                some = rows[first : first + _ROWS_AT_ONCE]
                batches.append(from_rows([_row(row, step.trace, base_ns, interner) for row in some], "ops"))
    except NamesFullError as error:
        interner.rollback(mark)
        raise DecodeError(error.args[0], error.slug) from error
    return Cut(pa.Table.from_batches(batches, OPS), decoded, uncut)


class _Session:
    """An XSpace of which one plane is in memory at a time, and one line of it."""

    def __init__(self, data: bytes | memoryview) -> None:
        """Count what is in ``data``; DecodeError when it is too much, CutShortError when it is no XSpace."""
        if len(data) > BYTES_MAX:
            raise DecodeError(f"a profiler session of {len(data)} bytes, more than {BYTES_MAX}")
        self._planes = list(parts(memoryview(data), XSpace.PLANES_FIELD_NUMBER))
        lines = (line for plane in self._planes for line in parts(plane, _LINES))
        events = (event for line in lines for event in parts(line, XLine.EVENTS_FIELD_NUMBER))
        if next(islice(events, EVENTS_MAX, None), None) is not None:
            raise DecodeError(f"a profiler session of more than {EVENTS_MAX} events")

    @property
    def planes(self) -> Iterator["_Plane"]:
        """The planes, each parsed when it is its turn."""
        return map(_Plane, self._planes)


class _Plane:
    """An XPlane of which one line is in memory at a time."""

    def __init__(self, data: memoryview) -> None:
        head = XPlane.FromString(without(data, _LINES))
        self.name = head.name
        self.event_metadata, self.stat_metadata, self.stats = head.event_metadata, head.stat_metadata, head.stats
        self._lines = list(parts(data, _LINES))

    @property
    def lines(self) -> Iterator[XLine]:
        """The lines, each parsed when it is its turn."""
        return (XLine.FromString(bytes(line)) for line in self._lines)


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
