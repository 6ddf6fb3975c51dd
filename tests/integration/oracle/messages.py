"""Writes protocol buffer messages by hand, including ones that the library would not write."""

from collections.abc import Iterable
from typing import Any, Final

from fakes.run_metadata import varint

GRAPH_DEF: Final = {"node": 1, "versions": 4}
NODE_DEF: Final = {"name": 1, "op": 2, "input": 3, "device": 4, "attr": 5}
ATTR_VALUE: Final = {"list": 1, "s": 2, "i": 3, "f": 4, "b": 5, "type": 6, "shape": 7, "tensor": 8}
SHAPE: Final = {"dim": 2, "unknown_rank": 3}
RUN_METADATA: Final = {"step_stats": 1, "cost_graph": 2}
STEP_STATS: Final = {"dev_stats": 1}
DEVICE: Final = {"device": 1, "node_stats": 2}
NODE_STATS: Final = {
    "node_name": 1,
    "all_start_micros": 2,
    "op_start_rel_micros": 3,
    "op_end_rel_micros": 4,
    "all_end_rel_micros": 5,
    "memory": 6,
    "output": 7,
    "timeline_label": 8,
    "scheduled_micros": 9,
    "thread_id": 10,
    "memory_stats": 12,
    "all_start_nanos": 13,
    "op_start_rel_nanos": 14,
    "op_end_rel_nanos": 15,
}
ALLOCATOR: Final = {
    "allocator_name": 1,
    "total_bytes": 2,
    "peak_bytes": 3,
    "live_bytes": 4,
    "allocator_bytes_in_use": 5,
    "allocation_records": 6,
}
RECORD: Final = {"alloc_micros": 1, "alloc_bytes": 2}
OUTPUT: Final = {"slot": 1, "tensor_description": 3}
MEMORY: Final = {"temp_memory_size": 1, "persistent_memory_size": 3}
TENSOR: Final = {"dtype": 1, "shape": 2, "allocation_description": 4}
ALLOCATION: Final = {"requested_bytes": 1, "allocated_bytes": 2, "allocator_name": 3, "ptr": 6}
OP_LOG: Final = {"log_entries": 1, "id_to_string": 2}
LOG_ENTRY: Final = {"name": 1, "float_ops": 2, "types": 3, "code_def": 4}
CODE_DEF: Final = {"traces": 1}
TRACE: Final = {"file": 1, "lineno": 2, "func_start_line": 5, "file_id": 6, "function_id": 7, "line_id": 8}
ENTRY: Final = {"key": 1, "value": 2}
DIM: Final = {"size": 1}


def message(numbers: dict[str, int], **values: Any) -> bytes:
    """Return a message of the fields ``values``, whose numbers are in ``numbers``.

    A list is a repeated field. None is left out, but 0 is written.
    """
    return b"".join(_field(numbers[name], value) for name, value in values.items())


def _field(number: int, value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, list):
        return b"".join(_field(number, element) for element in value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    text = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(text)) + text


def map_entries(pairs: Iterable[tuple[Any, Any]]) -> list[bytes]:
    """Return the entries of a map field."""
    return [message(ENTRY, key=key, value=value) for key, value in pairs]


def shape(sizes: Iterable[int] | None) -> bytes:
    """Return a TensorShapeProto; None stands for an unknown rank, -1 for an unknown dimension."""
    if sizes is None:
        return message(SHAPE, unknown_rank=1)
    return message(SHAPE, dim=[message(DIM, size=size) for size in sizes])
