"""Decodes the XSpace of a profiler session that recorded one step into rows of `ops`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from operator import or_
from typing import Final, NamedTuple

import pyarrow as pa
from google.protobuf.message import DecodeError as ParseError

from ...formats.pb_wire import InvalidMessageError, field_contents, without_field
from ..errors import DecodeError
from ..store.devices import accelerator
from ..store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID, OPS
from .columns import from_rows, saturated
from .decode import DecodedStep
from .interner import Interner, NamesFullError
from .memory_changes import MemoryEvent, MemoryRows, memory_rows
from .placement import Placement
from .proto.xplane_pb2 import XLine, XPlane, XSpace
from .session_ops import HOST_DEVICE, Execution, Marker, executions, markers, runs_no_op

#: Maximum events and bytes of a session; larger ones are refused before they are parsed.
EVENTS_MAX: Final = 1 << 20
BYTES_MAX: Final = 64 << 20

_LINES_FIELD: Final = XPlane.LINES_FIELD_NUMBER
#: Number of rows that are converted to columns together. As Python numbers, rows take ten times the
#: memory.
_BATCH_ROWS: Final = 16_384


class SessionRows(NamedTuple):
    """The rows of a session's ops and memory, and the facts about its step.

    ``programs``: what XLA compiled, as HloProto, by module. ``ran_no_op``: the session shows that
    there is no op to record. XLA or a remote server ran all ops, or the step has none.
    """

    ops: pa.Table
    memory: MemoryRows
    programs: Mapping[bytes, bytes]
    step: DecodedStep
    ran_no_op: bool


def xspace(
    data: bytes | memoryview,
    start_ns: int,
    trace: int,
    interner: Interner,
    placement: Placement | None = None,
    caller: int = 0,
    *,
    may_be_idle: bool = False,
) -> SessionRows:
    """Return the rows of a session that recorded the step with trace number ``trace``.

    ``start_ns``: start of the session (real time). ``placement``: the CPUs of nodes. ``caller``:
    the step's thread (thread_lines.py). ``may_be_idle``: the step may have used no TensorFlow.

    DecodeError if ``data`` is not an XSpace, is too large or has too many names; then no name is
    left in ``interner``.
    """
    placement = placement or Placement()
    session = Session(data)
    memory: list[MemoryEvent] = []
    programs: dict[bytes, bytes] = {}
    ops = [_with_cpu(op, placement) for op in session.executions(start_ns, caller, memory, programs)]
    ran_no_op = not ops and session.runs_no_op(may_be_idle=may_be_idle)
    mark = interner.mark()
    try:
        rows, step = step_rows(ops, trace, interner)
        memory_tables = memory_rows(memory, trace, interner)
    except NamesFullError as error:
        interner.rollback(mark)
        raise DecodeError(error.args[0], error.slug) from error
    return SessionRows(rows, memory_tables, programs, step, ran_no_op)


def step_rows(ops: Sequence[Execution], trace: int, interner: Interner) -> tuple[pa.Table, DecodedStep]:
    """Return ``ops`` as OPS rows of the step with trace number ``trace``, and the facts about it.

    NamesFullError if they have too many names.
    """
    base_ns = saturated(min((op.start_ns for op in ops), default=0))
    flags = reduce(or_, map(accelerator, {op.device for op in ops}), 0)
    batches: list[pa.RecordBatch] = []
    for first in range(0, len(ops), _BATCH_ROWS):
        batch = ops[first : first + _BATCH_ROWS]
        batches.append(from_rows([_row(op, trace, base_ns, interner) for op in batch], "ops"))
    return pa.Table.from_batches(batches, OPS), DecodedStep(len(ops), base_ns, flags, None)


class Session:
    """The XSpace of a profiler session.

    DecodeError if ``data`` is not one, or has more than ``bytes_max`` bytes or ``events_max``
    events. The methods parse the parts, so they raise DecodeError, too.
    """

    def __init__(self, data: bytes | memoryview, bytes_max: int | None = None, events_max: int | None = None) -> None:
        """Find the parts of ``data``; the limits are BYTES_MAX and EVENTS_MAX if they are None."""
        bytes_max, events_max = bytes_max or BYTES_MAX, events_max or EVENTS_MAX
        with _xspace_errors():
            self._session = _LazySession(data, bytes_max, events_max)

    def executions(
        self,
        started_ns: int,
        caller: int = 0,
        memory: list[MemoryEvent] | None = None,
        programs: dict[bytes, bytes] | None = None,
    ) -> list[Execution]:
        """Return the op executions; the arguments are those of `session_ops.executions`."""
        with _xspace_errors():
            return list(executions(self._session, started_ns, caller, memory, programs))

    def markers(self, started_ns: int) -> list[Marker]:
        """Return the marked steps and the calls of functions (`session_ops.markers`)."""
        with _xspace_errors():
            return list(markers(self._session, started_ns))

    def runs_no_op(self, *, may_be_idle: bool) -> bool:
        """Whether the session shows that there is no op to record (`session_ops.runs_no_op`)."""
        with _xspace_errors():
            return runs_no_op(self._session, may_be_idle=may_be_idle)


@contextmanager
def _xspace_errors() -> Iterator[None]:
    try:
        yield
    except (InvalidMessageError, ParseError) as error:
        raise DecodeError("not an XSpace") from error


class _LazySession:
    """An XSpace that parses one plane, and one of its lines, at a time."""

    def __init__(self, data: bytes | memoryview, bytes_max: int, events_max: int) -> None:
        """Find the planes in ``data`` and check its size.

        DecodeError if it has too many bytes or events, InvalidMessageError if it is malformed.
        """
        if len(data) > bytes_max:
            raise DecodeError(f"a profiler session of {len(data)} bytes, more than {bytes_max}")
        self._planes = list(field_contents(memoryview(data), XSpace.PLANES_FIELD_NUMBER))
        lines = (line for plane in self._planes for line in field_contents(plane, _LINES_FIELD))
        events = (event for line in lines for event in field_contents(line, XLine.EVENTS_FIELD_NUMBER))
        if next(islice(events, events_max, None), None) is not None:
            raise DecodeError(f"a profiler session of more than {events_max} events")

    @property
    def planes(self) -> Iterator["_LazyPlane"]:
        """The planes, each parsed when the iteration reaches it."""
        return map(_LazyPlane, self._planes)


class _LazyPlane:
    """An XPlane that parses one line at a time."""

    def __init__(self, data: memoryview) -> None:
        head = XPlane.FromString(without_field(data, _LINES_FIELD))
        self.name = head.name
        self.event_metadata, self.stat_metadata, self.stats = head.event_metadata, head.stat_metadata, head.stats
        self._lines = list(field_contents(data, _LINES_FIELD))

    @property
    def lines(self) -> Iterator[XLine]:
        """The lines, each parsed when the iteration reaches it."""
        return (XLine.FromString(bytes(line)) for line in self._lines)


def _with_cpu(op: Execution, placement: Placement) -> Execution:
    device = placement.device_of(op.node, op.device) if op.device == HOST_DEVICE else op.device
    return op if device == op.device else op._replace(device=device)


def _row(op: Execution, trace: int, base_ns: int, interner: Interner) -> tuple[int, ...]:
    """Return a row of OPS."""
    memory = op.memory
    return (
        trace,
        interner.id(NODE, op.node),
        interner.id(DEVICE, op.device),
        interner.id(LABEL, op.label),
        op.thread,
        saturated(op.start_ns - base_ns),
        0,
        saturated(op.own_ns),
        0,
        0,
        saturated(memory.total),
        saturated(memory.peak),
        saturated(memory.live),
        interner.id(ALLOCATOR, memory.allocator) if memory.allocator else NONE_ID,
        saturated(memory.in_use),
        saturated(memory.output),
        NONE_ID,
        0,
        0,
    )
