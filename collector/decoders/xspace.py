"""Decodes the XSpace of a profiler session that recorded one step into rows of `ops`."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

import pyarrow as pa

from ..errors import DecodeError
from ..store.devices import accelerator
from ..store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID, OPS
from .columns import from_rows, saturated
from .decode import DecodedStep
from .interner import Interner, NamesFullError
from .memory_changes import MemoryEvent, MemoryRows, memory_rows
from .placement import Placement
from .session import Session, xspace_errors
from .session_ops import HOST_DEVICE, Execution, executions, runs_no_op

#: Maximum events and bytes of a session; larger ones are refused before they are parsed.
EVENTS_MAX: Final = 1 << 20
BYTES_MAX: Final = 64 << 20

#: Number of rows that are converted to columns together. As Python numbers, rows take ten times the
#: memory.
_BATCH_ROWS: Final = 16_384


class SessionRows(NamedTuple):
    """The rows of a session's ops and memory, and the facts about its step.

    ``programs``: what XLA compiled, as HloProto, by name and number. ``ran_no_op``: the session
    shows that there is no op to record. XLA or a remote server ran all ops, or the step has none.
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
    memory: list[MemoryEvent] = []
    programs: dict[bytes, bytes] = {}
    with xspace_errors():
        session = Session(data, BYTES_MAX, EVENTS_MAX)
        ops = [_with_cpu(op, placement) for op in executions(session, start_ns, caller, memory, programs)]
        ran_no_op = not ops and runs_no_op(session, may_be_idle=may_be_idle)
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
