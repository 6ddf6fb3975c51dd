"""Decodes a RunMetadata in Python.

Tests compare the C decoder with this module, so it follows node.h and walk.h rule by rule.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError as ParseError

from ..store.devices import accelerator
from ..store.output_signatures import OpOutput, encode
from ..store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID, OPS, OUTPUTS
from .interner import NameTable
from .proto.run_metadata_pb2 import AllocationRecord, AllocatorMemoryUsed, NodeExecStats, NodeOutput, RunMetadata

OK, MALFORMED, NAMES_FULL, TOO_LONG = range(4)

#: Maximum number of node executions, and of allocations, in one RunMetadata. A few bytes of a
#: message can make a row of hundreds of bytes.
ROWS_MAX: Final = 1 << 18
ALLOCATIONS_MAX: Final = 1 << 19
#: Maximum number of outputs of a node execution whose addresses are read.
ADDRESSES_MAX: Final = 64

Row = tuple[int, ...]

_MAX: Final = (1 << 63) - 1
_MIN: Final = -(1 << 63)
_START: Final = OPS.names.index("start_ns")
_GPU: Final = b"GPU"


class _RefusedError(Exception):
    """A RunMetadata makes too many names or rows; the argument is the status."""


class DecodedRows(NamedTuple):
    """Decoded rows: OPS as one list per column; ALLOCATIONS, allocator and address as tuples.

    The allocator of an allocation is NONE_ID if it is called *GPU*, the address 0 if it is unknown.
    """

    ops: list[list[int]]
    allocations: list[Row]


def append_rows(decoded: DecodedRows, data: bytes, trace: int, names: NameTable) -> tuple[int, int, int, int]:
    """Append the rows of a RunMetadata; return (rows, base_ns, accelerator, status).

    Unless the status is OK, no row and no name is added.
    """
    message = RunMetadata()
    try:
        message.ParseFromString(data)
        records = _records(message)
    except ParseError:
        return 0, 0, 0, MALFORMED
    counts = names.counts()
    allocations: list[Row] = []
    try:
        rows = list(_rows(message, trace, names, records, allocations))
    except _RefusedError as refusal:
        names.cut(counts)
        return 0, 0, 0, refusal.args[0]
    base_ns = min((row[_START] for row in rows if row[_START] > 0), default=0)
    for column, values in zip(decoded.ops, zip(*rows, strict=True), strict=False):
        column.extend(values)
    if base_ns:
        starts = decoded.ops[_START]
        starts[-len(rows) :] = [_saturated(start - base_ns) for start in starts[-len(rows) :]]
    decoded.allocations.extend(allocations)
    flags = reduce(or_, (accelerator(device.device) for device in message.step_stats.dev_stats), 0)
    return len(rows), base_ns, flags, OK


def _records(message: RunMetadata) -> Iterator[list[list[AllocationRecord]]]:
    """Return an iterator over the records of each allocator of each node execution.

    ParseError if a record does not parse.
    """
    return iter(
        [
            [list(map(AllocationRecord.FromString, use.allocation_records)) for use in node.memory]
            for device in message.step_stats.dev_stats
            for node in device.node_stats
        ]
    )


def _gpu_uses(uses: Sequence[AllocatorMemoryUsed]) -> list[AllocatorMemoryUsed]:
    return [use for use in uses if _GPU in use.allocator_name]


def _rows(
    message: RunMetadata,
    trace: int,
    names: NameTable,
    records: Iterator[list[list[AllocationRecord]]],
    allocations: list[Row],
) -> Iterator[Row]:
    """Yield the rows of a step, with absolute `start_ns`.

    The allocations of the step are appended to ``allocations``. _RefusedError if the step has too
    many names or rows.
    """
    count = 0
    for device in message.step_stats.dev_stats:
        if device.node_stats:
            device_id = _id(names, DEVICE, device.device)
            for node in device.node_stats:
                if count == ROWS_MAX:
                    raise _RefusedError(TOO_LONG)
                count += 1
                allocators = [_id(names, ALLOCATOR, use.allocator_name) for use in node.memory]
                name, label, outputs = _names(node, names)
                blocks = _output_blocks(node.output)
                node_allocations = [
                    (
                        *(trace, name, device_id, record.alloc_micros, record.alloc_bytes),
                        NONE_ID if _GPU in use.allocator_name else allocator,
                        _take_address(blocks, record.alloc_bytes),
                    )
                    for use, allocator, use_records in zip(node.memory, allocators, next(records), strict=True)
                    for record in use_records
                ]
                if node.all_start_micros > 0:  # the TF profiler ignores the others
                    allocations += node_allocations
                    if len(allocations) > ALLOCATIONS_MAX:
                        raise _RefusedError(TOO_LONG)
                total, peak, live, in_use = _memory(node.memory)
                stats = node.memory_stats
                yield (
                    *(trace, name, device_id, label, node.thread_id),
                    *_times(node),
                    *(total, peak, live, allocators[0] if allocators else NONE_ID, in_use),
                    *(_output_bytes(node.output), outputs),
                    *(stats.temp_memory_size, stats.persistent_memory_size),
                )


def _names(node: NodeExecStats, names: NameTable) -> Row:
    """Return the ids of an execution's node name, label and output signature."""
    text, _, suffix = node.node_name.partition(b":")
    label = node.timeline_label or suffix
    return (
        _id(names, NODE, text),
        _id(names, LABEL, label) if label else NONE_ID,
        _id(names, OUTPUTS, encode(map(_output, node.output))) if node.output else NONE_ID,
    )


def _output(output: NodeOutput) -> OpOutput:
    tensor = output.tensor_description
    return OpOutput(
        output.slot,
        tensor.dtype,
        tensor.shape if tensor.HasField("shape") else None,
        output.HasField("tensor_description"),
        tensor.HasField("allocation_description"),
    )


def _times(node: NodeExecStats) -> Row:
    """Return the columns from `start_ns`, which is absolute, to `end_us_fix`."""
    start = _nanoseconds(node.all_start_nanos, node.all_start_micros)
    op_start = _nanoseconds(node.op_start_rel_nanos, node.op_start_rel_micros)
    op_end = _nanoseconds(node.op_end_rel_nanos, node.op_end_rel_micros)
    end_us = _saturated(start + op_end) // 1000
    return (
        start,
        op_start,
        _saturated(op_end - op_start),
        _saturated(node.all_start_micros - start // 1000),
        _saturated(node.op_end_rel_micros - (end_us - start // 1000)),
    )


def _nanoseconds(nanos: int, micros: int) -> int:
    return nanos or _saturated(micros * 1000)


def _memory(uses: Sequence[AllocatorMemoryUsed]) -> Row:
    """Return the total, peak and live bytes, and the bytes in use on a GPU.

    The first three are sums over all allocators, the last is the maximum over the GPU allocators.
    """
    total = peak = live = in_use = 0
    for use in uses:
        total = _saturated(total + use.total_bytes)
        peak = _saturated(peak + use.peak_bytes)
        live = _saturated(live + use.live_bytes)
    for use in _gpu_uses(uses):
        in_use = max(in_use, use.allocator_bytes_in_use)
    return total, peak, live, in_use


def _output_bytes(outputs: Sequence[NodeOutput]) -> int:
    """Return the bytes of all outputs."""
    return reduce(lambda size, output: _saturated(size + _size(output)), outputs, 0)


def _size(output: NodeOutput) -> int:
    allocation = output.tensor_description.allocation_description
    return max(allocation.allocated_bytes, allocation.requested_bytes)


def _output_blocks(outputs: Sequence[NodeOutput]) -> list[tuple[int, int]]:
    """Return bytes and address of the first ADDRESSES_MAX outputs that are described."""
    described = (output for output in outputs if output.tensor_description.HasField("allocation_description"))
    return [
        (_size(output), output.tensor_description.allocation_description.ptr)
        for output in islice(described, ADDRESSES_MAX)
    ]


def _take_address(blocks: list[tuple[int, int]], size: int) -> int:
    """Take the first of ``blocks`` of ``size`` bytes and return its address, 0 if there is none."""
    found = next((block for block in blocks if block[0] == size > 0 and block[1]), None)
    if found is None:
        return 0
    blocks.remove(found)
    return found[1]


def _saturated(value: int) -> int:
    return value if _MIN <= value <= _MAX else _MAX if value > 0 else _MIN


def _id(names: NameTable, kind: int, text: bytes) -> int:
    name_id = names.add(kind, text)
    if name_id == NONE_ID:
        raise _RefusedError(NAMES_FULL)
    return name_id
