"""The decoder without C: protobuf parses, a loop reads out. The oracle of the walker's tests, so rule by rule walk.h."""

from collections.abc import Iterator, Sequence
from typing import Final

from google.protobuf.message import DecodeError as ParseError
from tfprof.collector.ingest.interner import NameTable
from tfprof.collector.ingest.proto.run_metadata_pb2 import (
    AllocatorMemoryUsed,
    NodeExecStats,
    NodeOutput,
    RunMetadata,
    TensorDescription,
)
from tfprof.collector.store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID, OPS, SHAPE

OK, MALFORMED, NAMES_FULL, TOO_LONG = range(4)

#: Node executions that one RunMetadata may hold: a few bytes each are enough to make as many rows of hundreds.
ROWS_MAX: Final = 1 << 18

Columns = list[list[int]]
Row = tuple[int, ...]

_MAX: Final = (1 << 63) - 1
_MIN: Final = -(1 << 63)
_HOUR_NS: Final = 3600 * 10**9
_START: Final = OPS.names.index("start_ns")


class _RefusedError(Exception):
    """A RunMetadata makes too many names or rows; the argument is the status."""


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
    counts = names.counts()
    try:
        rows = list(_rows(message, trace, names))
    except _RefusedError as refused:
        names.cut(counts)
        return 0, 0, refused.args[0]
    base_ns = min((row[_START] for row in rows if row[_START] > 0), default=0)
    for column, values in zip(to, zip(*rows, strict=True), strict=False):
        column.extend(values)
    if base_ns:
        starts = to[_START]
        starts[-len(rows) :] = [_bounded(start - base_ns) for start in starts[-len(rows) :]]
    return len(rows), base_ns, OK


def _rows(message: RunMetadata, trace: int, names: NameTable) -> Iterator[Row]:
    """Yield the rows of a step; `start_ns` is the whole time as yet."""
    count = 0
    for device in message.step_stats.dev_stats:
        if device.node_stats:
            number = _id(names, DEVICE, device.device)
            for node in device.node_stats:
                if count == ROWS_MAX:
                    raise _RefusedError(TOO_LONG)
                count += 1
                name, label, allocator, shape = _names(node, names)
                total, peak, live, in_use = _memory(node.memory)
                output, dtype = _outputs(node.output)
                stats = node.memory_stats
                yield (
                    *(trace, name, number, label, node.thread_id),
                    *_times(node),
                    *(total, peak, live, allocator, in_use),
                    *(output, len(node.output), dtype, shape),
                    *(stats.temp_memory_size, stats.persistent_memory_size),
                )


def _names(node: NodeExecStats, names: NameTable) -> Row:
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


def _times(node: NodeExecStats) -> Row:
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


def _memory(uses: Sequence[AllocatorMemoryUsed]) -> Row:
    """Return the sums of total, peak and live bytes over allocators, and the most that a GPU's had in use."""
    total = peak = live = in_use = 0
    for use in uses:
        total = _bounded(total + use.total_bytes)
        peak = _bounded(peak + use.peak_bytes)
        live = _bounded(live + use.live_bytes)
        if b"GPU" in use.allocator_name:
            in_use = max(in_use, use.allocator_bytes_in_use)
    return total, peak, live, in_use


def _outputs(outputs: Sequence[NodeOutput]) -> tuple[int, int]:
    """Return the bytes of all outputs and the data type of the first."""
    size = 0
    for output in outputs:
        allocation = output.tensor_description.allocation_description
        size = _bounded(size + max(allocation.allocated_bytes, allocation.requested_bytes))
    return size, outputs[0].tensor_description.dtype if outputs else 0


def _bounded(value: int) -> int:
    return value if _MIN <= value <= _MAX else _MAX if value > 0 else _MIN


def _id(names: NameTable, kind: int, text: bytes) -> int:
    number = names.add(kind, text)
    if number == NONE_ID:
        raise _RefusedError(NAMES_FULL)
    return number
