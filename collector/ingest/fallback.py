"""The decoder without C: protobuf parses, a loop reads out. The oracle of the walker's tests, so rule by rule walk.h."""

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError as ParseError

from tfprof.collector.ingest.interner import NameTable
from tfprof.collector.ingest.proto.run_metadata_pb2 import NodeExecStats, NodeOutput, RunMetadata, TensorDescription
from tfprof.collector.store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID, OPS, SHAPE

OK, MALFORMED, NAMES_FULL = range(3)

Columns = list[list[int]]

_MAX: Final = (1 << 63) - 1
_MIN: Final = -(1 << 63)
_HOUR_NS: Final = 3600 * 10**9
_START: Final = OPS.names.index("start_ns")


class _FullError(Exception):
    """The name table takes no more."""


def columns() -> Columns:
    """Return no rows: one empty list a column of OPS."""
    return [[] for _ in OPS]


def add(to: Columns, part: bytes, trace: int, names: NameTable) -> tuple[int, int, int]:
    """Append the rows of a RunMetadata; return (rows, base_ns, status), and leave nothing behind without OK."""
    message = RunMetadata()
    try:
        message.ParseFromString(part)
    except ParseError:
        return 0, 0, MALFORMED
    counts, first = names.counts(), len(to[0])
    try:
        _add_steps(to, message, trace, names)
    except _FullError:
        names.cut(counts)
        for column in to:
            del column[first:]
        return 0, 0, NAMES_FULL
    starts = to[_START]
    base_ns = min((start for start in starts[first:] if start > 0), default=0)
    starts[first:] = [_bounded(start - base_ns) for start in starts[first:]]
    return len(starts) - first, base_ns, OK


def _add_steps(to: Columns, message: RunMetadata, trace: int, names: NameTable) -> None:
    for device in message.step_stats.dev_stats:
        if device.node_stats:
            number = _id(names, DEVICE, device.device)
            for node in device.node_stats:
                for column, value in zip(to, (trace, *_row(node, number, names)), strict=True):
                    column.append(value)


def _row(node: NodeExecStats, device: int, names: NameTable) -> tuple[int, ...]:
    """Return the columns of one node execution after `trace`."""
    name, label, allocator, shape = _names(node, names)
    return (
        name,
        device,
        label,
        node.thread_id,
        *_times(node),
        _bounded_sum(use.total_bytes for use in node.memory),
        _bounded_sum(use.peak_bytes for use in node.memory),
        _bounded_sum(use.live_bytes for use in node.memory),
        allocator,
        max(0, *(use.allocator_bytes_in_use for use in node.memory if b"GPU" in use.allocator_name), 0),
        _bounded_sum(_size(output) for output in node.output),
        len(node.output),
        node.output[0].tensor_description.dtype if node.output else 0,
        shape,
        node.memory_stats.temp_memory_size,
        node.memory_stats.persistent_memory_size,
    )


def _names(node: NodeExecStats, names: NameTable) -> tuple[int, int, int, int]:
    """Return the ids of a node's name, label, allocator and shape."""
    text, _, rest = node.node_name.partition(b":")
    label = node.timeline_label or rest
    first = node.output[0].tensor_description if node.output else TensorDescription()
    return (
        _id(names, NODE, text),
        _id(names, LABEL, label) if label else NONE_ID,
        _id(names, ALLOCATOR, node.memory[0].allocator_name) if node.memory else NONE_ID,
        _id(names, SHAPE, first.shape) if first.HasField("shape") else NONE_ID,
    )


def _times(node: NodeExecStats) -> tuple[int, ...]:
    """Return `start_ns` (not yet from the base) to `end_us_fix`."""
    start = _nanoseconds(node.all_start_nanos, node.all_start_micros)
    op_start = _nanoseconds(node.op_start_rel_nanos, node.op_start_rel_micros)
    op_end = _nanoseconds(node.op_end_rel_nanos, node.op_end_rel_micros)
    all_end = _nanoseconds(node.all_end_rel_nanos, node.all_end_rel_micros)
    end_us = _bounded(start + op_end) // 1000
    return (
        start,
        op_start,
        _bounded(op_end - op_start),
        _bounded(all_end - op_end),
        _waited(start, _nanoseconds(node.scheduled_nanos, node.scheduled_micros)),
        _bounded(node.all_start_micros - start // 1000),
        _bounded(node.op_end_rel_micros - (end_us - start // 1000)),
    )


def _nanoseconds(nanos: int, micros: int) -> int:
    return nanos or _bounded(micros * 1000)


def _waited(start: int, scheduled: int) -> int:
    """Return how long a node waited, 0 where that is not known; TF 1.15 has ``scheduled`` times 1000, modulo 2**64."""
    if start <= 0 or not scheduled:
        return 0
    if 0 < scheduled <= start:
        return start - scheduled
    wait_ns, rest = divmod((start * 1000 - scheduled) % (1 << 64), 1000)
    return 0 if rest or wait_ns > _HOUR_NS else wait_ns


def _size(output: NodeOutput) -> int:
    allocation = output.tensor_description.allocation_description
    return max(allocation.allocated_bytes, allocation.requested_bytes)


def _bounded(value: int) -> int:
    return min(max(value, _MIN), _MAX)


def _bounded_sum(values: Iterable[int]) -> int:
    total = 0
    for value in values:
        total = _bounded(total + value)
    return total


def _id(names: NameTable, kind: int, text: bytes) -> int:
    number = names.add(kind, text)
    if number == NONE_ID:
        raise _FullError
    return number
