"""The executions of one step as a StepStats, as TensorFlow's RunMetadata has them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

import pyarrow as pa

from ...formats import layout
from ..proto import tensorflow_pb2
from ..store.columns import row_tuples
from ..store.output_signatures import decode
from ..store.schema import ALLOCATOR, DEVICE, LABEL, NODE, NONE_ID, OUTPUTS
from ..tfviews.encoding import valid_utf8
from ..tfviews.nodes import STREAM, interned_bytes, interned_texts

#: Columns of OPS that are read besides those of a batch.
COLUMNS: Final = (
    *("label", "op_start_ns", "op_end_ns", "start_us_fix", "end_us_fix", "total_bytes", "allocator"),
    *("in_use_bytes", "outputs", "temp_bytes", "persistent_bytes", "live_bytes"),
)
_READ: Final = ("node", "device", "thread", "start_ns", "peak_bytes", "output_bytes", *COLUMNS)
#: Bytes of an element, by number of the DataType; the size of other types varies.
_SIZES: Final = {
    **dict.fromkeys((1, 3, 12, 13, 22), 4),
    **dict.fromkeys((2, 8, 9, 23), 8),
    **dict.fromkeys((4, 6, 10, 11), 1),
    **dict.fromkeys((5, 14, 15, 16, 17, 19), 2),
    18: 16,
}


#: A label that is only an op type was cut from the end of a node's name. TensorFlow's Timeline
#: reads the type there.
_OP_TYPE: Final = re.compile(r"[A-Z_]\w*", re.ASCII)

#: The op type in a label such as `y = Neg(x)`.
_TYPE_IN_LABEL: Final = re.compile(r" = (\w+)\(", re.ASCII)
#: The name of a device contains this, unless the device is a host. On a host, the op type is added
#: to the name of a node.
_DEVICE_PART: Final = "device:"


class Names(NamedTuple):
    """Texts by id: nodes, devices, labels, allocators; and output signatures."""

    nodes: Mapping[int, str]
    devices: Mapping[int, str]
    labels: Mapping[int, str]
    allocators: Mapping[int, str]
    signatures: Mapping[int, bytes]

    @classmethod
    def of(cls, names: pa.Table) -> "Names":
        """Return the texts in NAMES."""
        nodes, devices, labels, allocators = (
            {key: valid_utf8(text) for key, text in interned_texts(names, kind).items()}
            for kind in (NODE, DEVICE, LABEL, ALLOCATOR)
        )
        return cls(nodes, devices, labels, allocators, interned_bytes(names, OUTPUTS))


class _Row(NamedTuple):
    """One execution, with the columns of _READ."""

    node: int
    device: int
    thread: int
    start_ns: int
    peak: int
    output: int
    label: int
    op_start_ns: int
    op_end_ns: int
    start_us_fix: int
    end_us_fix: int
    total: int
    allocator: int
    in_use: int
    outputs: int
    temp: int
    persistent: int
    live: int


def step_stats(rows: pa.Table, names: Names, source: int, output_sizes: Mapping[tuple[int, int], Any]) -> bytes:
    """Return the serialized StepStats of the executions of a step.

    ``rows``: a part of a batch with COLUMNS. ``source``: where the step was recorded (layout.XSPACE
    or layout.RUN_METADATA). ``output_sizes``: bytes and address, by position of the execution in
    ``rows`` and by slot. For other executions, a single output gets the recorded size, and several
    outputs get the sizes that their shapes need.
    """
    message = tensorflow_pb2.StepStats()
    devices: dict[int, Any] = {}
    order = [(_Row._make(row), at) for at, row in enumerate(row_tuples(rows, *_READ))]
    types = {
        row.node: found[1] for row, _ in order if (found := _TYPE_IN_LABEL.search(names.labels.get(row.label, "")))
    }
    for row, at in sorted(order, key=lambda pair: pair[0].start_ns):
        if row.device not in devices:
            devices[row.device] = message.dev_stats.add(device=names.devices.get(row.device, ""))
        stats = devices[row.device].node_stats.add()
        _fill(stats, row, names, source, types)
        stats.output.extend(_outputs(row, at, names, output_sizes))
    content: bytes = message.SerializeToString()
    return content


def _fill(stats: Any, row: _Row, names: Names, source: int, types: Mapping[int, str]) -> None:
    """Fill in all but the outputs; ``types``: op types of nodes by id, as labels have them."""
    stats.node_name = names.nodes.get(row.node, "")
    label = names.labels.get(row.label, "")
    if source == layout.XSPACE and label:
        stats.timeline_label = f"{stats.node_name} = {label}()"
    elif _OP_TYPE.fullmatch(label) and STREAM not in names.devices.get(row.device, "").lower():
        stats.node_name += f":{label}"
    else:
        stats.timeline_label = label
        if row.node in types and not _TYPE_IN_LABEL.search(label) and row.device in names.devices:
            is_host = _DEVICE_PART not in names.devices[row.device].lower()
            stats.node_name += f":{types[row.node]}" * is_host
    stats.thread_id = row.thread
    end_ns = row.op_start_ns + row.op_end_ns
    stats.all_start_nanos, stats.op_start_rel_nanos = row.start_ns, row.op_start_ns
    stats.op_end_rel_nanos = stats.all_end_rel_nanos = end_ns
    stats.all_start_micros = row.start_ns // 1000 + row.start_us_fix
    # TensorFlow also rounds the moments, and not the distance between them.
    stats.op_start_rel_micros = (row.start_ns + row.op_start_ns) // 1000 - row.start_ns // 1000
    end_us = (row.start_ns + end_ns) // 1000 - row.start_ns // 1000 + row.end_us_fix
    stats.op_end_rel_micros = stats.all_end_rel_micros = end_us
    if row.allocator != NONE_ID:
        # The peak in a batch includes the memory that the op keeps. The message has separate fields
        # for that memory.
        peak = row.peak - row.temp - row.persistent
        stats.memory.add(
            allocator_name=names.allocators.get(row.allocator, ""),
            total_bytes=row.total,
            peak_bytes=peak,
            live_bytes=row.live,
            allocator_bytes_in_use=row.in_use,
        )
    if row.temp or row.persistent:
        stats.memory_stats.temp_memory_size = row.temp
        stats.memory_stats.persistent_memory_size = row.persistent


def _outputs(row: _Row, at: int, names: Names, sizes: Mapping[tuple[int, int], Any]) -> Iterator[Any]:
    allocator = names.allocators.get(row.allocator, "")
    outputs = decode(names.signatures.get(row.outputs, b"")) if row.outputs != NONE_ID else []
    allocated = sum(output.allocated for output in outputs)
    for output in outputs:
        message = tensorflow_pb2.NodeOutput(slot=output.slot)
        if output.described:
            tensor = message.tensor_description
            tensor.dtype = cast("Any", output.dtype)
            if output.shape is not None:
                tensor.shape.ParseFromString(output.shape)
            if output.allocated:
                size, pointer = sizes.get((at, output.slot), (row.output if allocated == 1 else None, 0))
                known = size if size is not None else tensor_bytes(output.dtype, tensor.shape)
                tensor.allocation_description.SetInParent()
                tensor.allocation_description.requested_bytes = known
                tensor.allocation_description.allocated_bytes = known
                tensor.allocation_description.ptr = pointer
                tensor.allocation_description.allocator_name = allocator
        yield message


def tensor_bytes(dtype: int, shape: Any) -> int:
    """Return the bytes of a tensor; 0 if type or shape do not tell."""
    elements = 1
    for dimension in shape.dim:
        elements *= dimension.size
    return 0 if shape.unknown_rank or elements < 0 else elements * _SIZES.get(dtype, 0)
