"""Decodes the XSpace of a profiler session that recorded one step into rows of `ops`."""

from collections.abc import Iterator
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
from .columns import from_rows
from .decode import DecodedStep
from .interner import Interner, NamesFullError
from .placement import Placement
from .proto.xplane_pb2 import XLine, XPlane, XSpace
from .session_ops import HOST_DEVICE, Execution, executions

#: Maximum events and bytes of a session; larger ones are refused before they are parsed.
EVENTS_MAX: Final = 1 << 20
BYTES_MAX: Final = 64 << 20

_INT64_MAX: Final = (1 << 63) - 1
_LINES_FIELD: Final = XPlane.LINES_FIELD_NUMBER
#: Number of rows that are converted to columns together. As Python numbers, rows take ten times the
#: memory.
_BATCH_ROWS: Final = 16_384


class SessionRows(NamedTuple):
    """OPS rows of a session, and the facts about its step."""

    ops: pa.Table
    step: DecodedStep


def xspace(
    data: bytes | memoryview,
    start_ns: int,
    trace: int,
    interner: Interner,
    placement: Placement | None = None,
    caller: int = 0,
) -> SessionRows:
    """Return the rows of a session that recorded the step with trace number ``trace``.

    ``start_ns``: start of the session (real time). ``placement``: the CPUs of nodes. ``caller``:
    the step's thread (layout.XSPACE_HEAD).

    DecodeError if ``data`` is not an XSpace, is too large or has too many names; then no name is
    left in ``interner``.
    """
    placement = placement or Placement()
    try:
        session_ops = [_with_cpu(op, placement) for op in executions(_LazySession(data), start_ns, caller)]
    except (InvalidMessageError, ParseError) as error:
        raise DecodeError("not an XSpace") from error
    base_ns = min((op.start_ns for op in session_ops), default=0)
    flags = reduce(or_, map(accelerator, {op.device for op in session_ops}), 0)
    mark = interner.mark()
    batches: list[pa.RecordBatch] = []
    try:
        for first in range(0, len(session_ops), _BATCH_ROWS):
            batch = session_ops[first : first + _BATCH_ROWS]
            batches.append(from_rows([_row(op, trace, base_ns, interner) for op in batch], "ops"))
    except NamesFullError as error:
        interner.rollback(mark)
        raise DecodeError(error.args[0], error.slug) from error
    return SessionRows(pa.Table.from_batches(batches, OPS), DecodedStep(len(session_ops), base_ns, flags, None))


class _LazySession:
    """An XSpace that parses one plane, and one of its lines, at a time."""

    def __init__(self, data: bytes | memoryview) -> None:
        """Find the planes in ``data`` and check its size.

        DecodeError if it has too many bytes or events, InvalidMessageError if it is malformed.
        """
        if len(data) > BYTES_MAX:
            raise DecodeError(f"a profiler session of {len(data)} bytes, more than {BYTES_MAX}")
        self._planes = list(field_contents(memoryview(data), XSpace.PLANES_FIELD_NUMBER))
        lines = (line for plane in self._planes for line in field_contents(plane, _LINES_FIELD))
        events = (event for line in lines for event in field_contents(line, XLine.EVENTS_FIELD_NUMBER))
        if next(islice(events, EVENTS_MAX, None), None) is not None:
            raise DecodeError(f"a profiler session of more than {EVENTS_MAX} events")

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
        min(op.start_ns - base_ns, _INT64_MAX),
        0,
        min(op.own_ns, _INT64_MAX),
        0,
        0,
        min(memory.total, _INT64_MAX),
        min(memory.peak, _INT64_MAX),
        max(-_INT64_MAX, min(memory.live, _INT64_MAX)),
        interner.id(ALLOCATOR, memory.allocator) if memory.allocator else NONE_ID,
        min(memory.in_use, _INT64_MAX),
        min(memory.output, _INT64_MAX),
        NONE_ID,
        0,
        0,
    )
