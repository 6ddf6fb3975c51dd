"""Decodes RunMetadata into rows of `ops`, `allocations`, `memory_changes` and `block_addresses`.

There are two decoders with equal results: one in C (`walker`), and one that uses protobuf and a
loop in Python (`python`).
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from ..errors import DecodeError, UsageError
from ..store.columns import pc
from ..store.schema import ALLOCATIONS, BLOCK_ADDRESSES, MEMORY_CHANGES, NONE_ID, OPS
from . import fallback
from .columns import from_columns
from .interner import Interner, walker

#: A serialized RunMetadata, which describes one step.
Serialized = bytes | memoryview

#: Reason for refusing a message, by the C decoder's status (wire.h).
ERRORS: Final = (
    None,
    "not a RunMetadata",
    "more distinct names than a job may have",
    f"more than {fallback.ROWS_MAX} node executions, or {fallback.ALLOCATIONS_MAX} allocations, in one step",
)


class DecodedStep(NamedTuple):
    """The result of one message: facts about its rows and devices, or the reason for refusing it.

    ``rows``: number of rows. ``base_ns``: the time from which `start_ns` of the rows counts (real
    time, ns). ``accelerator``: the flags of all devices of the step (devices.accelerator).
    ``error``: the reason for refusing the message, None if it was decoded.
    """

    rows: int
    base_ns: int
    accelerator: int
    error: str | None


def _decoded_step(rows: int, base_ns: int, accelerator: int, status: int) -> DecodedStep:
    return DecodedStep(rows, base_ns, accelerator, ERRORS[status])


class Allocations(NamedTuple):
    """The allocations of GPUs (ALLOCATIONS) and others (MEMORY_CHANGES), and BLOCK_ADDRESSES."""

    on_gpus: pa.RecordBatch
    others: pa.RecordBatch
    addresses: pa.Table


class DecodedSteps(NamedTuple):
    """The OPS rows and allocations of several messages, and the result of each message."""

    ops: pa.RecordBatch
    allocations: Allocations
    results: list[DecodedStep]


class TooManyRowsError(DecodeError):
    """Several messages together make too many rows for memory: the caller must pass fewer."""


class Decoder(Protocol):
    """A decoder of the RunMetadata of one job, many per call.

    ``name``: its name in the status file. ``is_quick``: whether it is as fast as the C decoder.
    """

    name: str
    is_quick: bool

    def run_metadata(self, messages: Sequence[Serialized], traces: Sequence[int], interner: Interner) -> DecodedSteps:
        """Return the rows of all ``messages``, and the result of each message in order.

        ``traces``: the trace number of each message. A refused message leaves no row and no name,
        and does not affect the others. TooManyRowsError if the caller must pass fewer messages.
        Names of some of the messages may then remain in ``interner``.
        """


#: Upper limit of the estimated number of executions per byte, so that one dense message does not
#: make all later buffers large. An execution usually has hundreds of bytes. In a denser message,
#: the executions are counted, and the message is decoded again.
_ROWS_A_BYTE_MAX: Final = 1 / 32


class WalkerDecoder:
    """The C decoder: it calls the compiled module.

    The size of the buffer follows from the highest number of rows per byte so far, since counting
    the rows first would take a quarter longer.
    """

    name = "walker"
    is_quick = True

    def __init__(self, walker: ModuleType) -> None:
        self._walker = walker
        self._rows_a_byte = 0.0

    def run_metadata(self, messages: Sequence[Serialized], traces: Sequence[int], interner: Interner) -> DecodedSteps:
        """Return the rows of all ``messages`` and the result of each message."""
        size = sum(len(message) for message in messages)
        room = int(size * self._rows_a_byte * 1.125)
        block = pa.allocate_buffer(self._walker.block_size(room))
        walker_result = self._walker.walk(messages, traces, interner.table, block, room)
        if walker_result is None:
            room = self._walker.count(messages)
            if room > fallback.ROWS_MAX and len(messages) > 1:
                raise TooManyRowsError(f"{room} node executions in {len(messages)} steps")
            block = pa.allocate_buffer(self._walker.block_size(room))
            walker_result = self._walker.walk(messages, traces, interner.table, block, room)
            self._rows_a_byte = min(max(self._rows_a_byte, room / size), _ROWS_A_BYTE_MAX)
        results, allocations = walker_result
        steps = [_decoded_step(*result) for result in results]
        ops = _columns(block, room, sum(step.rows for step in steps))
        return DecodedSteps(ops, _allocations(_allocation_rows(allocations)), steps)


class PythonDecoder:
    """The decoder in Python: it uses protobuf and a loop."""

    name = "python"
    is_quick = False

    def run_metadata(self, messages: Sequence[Serialized], traces: Sequence[int], interner: Interner) -> DecodedSteps:
        """Return the rows of all ``messages`` and the result of each message."""
        rows = fallback.DecodedRows([[] for _ in OPS], [])
        steps = []
        for message, trace in zip(messages, traces, strict=True):
            steps.append(_decoded_step(*fallback.append_rows(rows, bytes(message), trace, interner.table)))
        columns = [list(column) for column in zip(*rows.allocations, strict=True)] or [[] for _ in _ALLOCATIONS]
        allocations = pa.RecordBatch.from_arrays(list(map(pa.array, columns, _ALLOCATIONS.types)), schema=_ALLOCATIONS)
        return DecodedSteps(from_columns(rows.ops, "ops"), _allocations(allocations), steps)


def decoder(kind: str = "auto") -> Decoder:
    """Return the decoder ``kind``: `walker`, `python`, or `auto` for the fastest one available."""
    if kind == "python" or (kind == "auto" and walker is None):
        return PythonDecoder()
    if kind not in {"auto", "walker"}:
        raise UsageError(f"unknown decoder {kind}: choose auto, walker or python")
    if walker is None:
        raise UsageError("this build has no walker: it was installed without a C compiler")
    return WalkerDecoder(walker)


def _columns(block: pa.Buffer, room: int, rows: int) -> pa.RecordBatch:
    """Return the first ``rows`` rows of the columns in ``block``, which has room for ``room`` rows.

    Each column begins at a multiple of 64 bytes.
    """
    arrays, offset = [], 0
    for arrow_type, width in _TYPES:
        size = room * width
        arrays.append(pa.Array.from_buffers(arrow_type, rows, [None, block.slice(offset, size)]))
        offset += -(-size // 64) * 64
    return pa.RecordBatch.from_arrays(arrays, schema=OPS)


def _allocation_rows(columns: Sequence[bytes]) -> pa.RecordBatch:
    """Return the allocations with ``columns``, the bytes of each column."""
    arrays = [
        pa.Array.from_buffers(arrow_type, len(data) * 8 // arrow_type.bit_width, [None, pa.py_buffer(data)])
        for arrow_type, data in zip(_ALLOCATIONS.types, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_ALLOCATIONS)


def _allocations(rows: pa.RecordBatch) -> Allocations:
    is_on_gpu = pc.equal(rows["allocator"], pa.scalar(NONE_ID, pa.uint32()))
    others = rows.filter(pc.invert(is_on_gpu))
    unknown = pa.nulls(others.num_rows, pa.int64()).fill_null(0)
    changes = [*(others[name] for name in ("trace", "node", "device", "allocator", "t_us", "bytes")), unknown]
    changes += [unknown.cast(pa.float64()), unknown.cast(pa.uint16())]
    on_gpus = rows.filter(is_on_gpu)
    addresses = pa.Table.from_batches([batch.select(BLOCK_ADDRESSES.names) for batch in (others, on_gpus)])
    others = pa.RecordBatch.from_arrays(changes, schema=MEMORY_CHANGES)
    return Allocations(on_gpus.select(ALLOCATIONS.names), others, addresses)


_ALLOCATIONS: Final = pa.schema([*ALLOCATIONS, ("allocator", pa.uint32()), ("address", pa.uint64())])
_TYPES: Final = tuple((arrow_type, arrow_type.bit_width // 8) for arrow_type in OPS.types)
