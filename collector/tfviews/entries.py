"""The TF profiler's entry of a node and a step: execution times by device, and memory records."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..store.columns import flat, floor_divide, integers, pc, row_tuples
from ..store.devices import can_be_canonical, device_rows
from ..store.schema import NODE, NONE_ID
from .nodes import STREAM, interned_texts

#: Start and duration of an execution in µs.
Interval = tuple[int, int]
#: Time in µs and bytes of an allocation.
Allocation = tuple[int, int]
#: Bytes and address of an output.
Output = tuple[int, int]
#: Entries of a node by step.
EntriesByStep = dict[int, "Entry"]

#: The columns of OPS that are read, `trace` and `start_ns` first.
COLUMNS: Final = (
    "trace",
    "start_ns",
    "node",
    "device",
    "op_start_ns",
    "op_end_ns",
    "start_us_fix",
    "end_us_fix",
    "total_bytes",
    "peak_bytes",
    "live_bytes",
    "in_use_bytes",
    "output_bytes",
    "temp_bytes",
    "persistent_bytes",
    "outputs",
)

_NO_OUTPUTS: Final[Mapping[int, Output]] = {}


class MemoryRecord(NamedTuple):
    """The memory of one execution, in bytes.

    `micros`: the end of the execution in real time, in µs. `output_memory`: bytes and addresses of
    outputs, by slot, which only imported jobs have. `outputs`: id of the output signature.
    """

    micros: int
    host_temp: int
    host_persistent: int
    accelerator_temp: int
    accelerator_persistent: int
    requested: int
    peak: int
    residual: int
    output: int
    in_use: int
    output_memory: Mapping[int, Output]
    outputs: int = NONE_ID


@dataclass(slots=True)
class Entry:
    """The executions of one node in one step, in order of arrival; times in µs, 0 for none.

    `device` is the node's canonical device, empty if it has none. `start_us` and `end_us` cover the
    executions on the canonical device, and on streams, host and memcpy devices; executions on other
    CPUs and GPUs, or without a start, are left out. `runs` counts executions on the canonical
    device. Names of devices are in lower case. `allocations` are those of a GPU's allocator.
    """

    device: str = ""
    start_us: int = 0
    end_us: int = 0
    runs: int = 0
    accelerator: dict[str, list[Interval]] = field(default_factory=dict)
    cpu: dict[str, list[Interval]] = field(default_factory=dict)
    devices: set[str] = field(default_factory=set)
    memory: list[MemoryRecord] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)

    @property
    def executions(self) -> list[tuple[str, list[Interval]]]:
        """The executions by name of the device, for every device whose time counts."""
        return sorted([*self.accelerator.items(), *self.cpu.items()])


class _Device(NamedTuple):
    name: str
    can_be_canonical: bool  # the device is a CPU or GPU, to which nodes can belong
    is_stream: bool
    is_cpu: bool

    @classmethod
    def from_name(cls, text: bytes) -> "_Device":
        name = text.lower()
        decoded = name.decode("utf-8", "surrogateescape")
        return cls(decoded, can_be_canonical(name), STREAM in decoded, b"cpu" in name)


class _Row(NamedTuple):
    """One execution; times in µs."""

    trace: int
    node: int
    device: int
    start: int
    duration: int
    requested: int
    peak: int
    residual: int
    output: int
    in_use: int
    temp: int
    persistent: int
    outputs: int


def entries(
    ops: pa.Table,
    traces: pa.Table,
    names: pa.Table,
    canonical: Mapping[int, int],
    allocations: pa.Table,
    output_memory: pa.Table,
) -> dict[str, EntriesByStep]:
    """Return the TF profiler's entries by node name and step.

    Only rows of ``ops`` whose trace is in ``traces`` are used. ``ops`` has COLUMNS of OPS in stored
    order. ``traces`` has at least `trace`, `step` and `base_ns`; traces of one step are combined.
    ``canonical`` maps node ids to the ids of their canonical devices in the whole job
    (nodes.canonical_devices). A node that ran only on CPUs or GPUs other than its canonical device
    has no entry.
    """
    devices = _devices(names)
    canonical_names = {node: devices[device].name for node, device in canonical.items() if device in devices}
    steps: dict[int, int] = dict(row_tuples(traces, "trace", "step"))
    by_node: dict[int, EntriesByStep] = {}
    outputs = _outputs(output_memory)
    execution_counts: dict[tuple[int, int, int], int] = {}
    for row in _rows(ops, traces):
        device, canonical_name = devices[row.device], canonical_names.get(row.node)
        index = 0
        if outputs:
            key = row[:3]
            index = execution_counts.get(key, 0)
            execution_counts[key] = index + 1
        if device.can_be_canonical and device.name != canonical_name:
            continue
        by_step = by_node.setdefault(row.node, {})
        step = steps[row.trace]
        entry = by_step.get(step)
        if entry is None:
            entry = by_step[step] = Entry(canonical_name or "")
        entry.devices.add(device.name)
        if row.start > 0:
            _add_time(entry, device, row)
            if device.name == canonical_name:
                entry.memory.append(_record(device, row, outputs.get((*row[:3], index), _NO_OUTPUTS)))
    _add_allocations(by_node, allocations, steps, devices, canonical_names)
    node_names = interned_texts(names, NODE)
    return {node_names[node]: by_step for node, by_step in by_node.items()}


def _add_time(entry: Entry, device: _Device, row: _Row) -> None:
    duration = row.duration or 1
    entry.start_us = min(entry.start_us or row.start, row.start)
    entry.end_us = max(entry.end_us, row.start + duration)
    if device.is_stream:
        entry.accelerator.setdefault(device.name, []).append((row.start, duration))
    elif device.can_be_canonical:
        entry.cpu.setdefault(device.name, []).append((row.start, duration))
        entry.runs += 1


def _record(device: _Device, row: _Row, outputs: Mapping[int, Output]) -> MemoryRecord:
    sizes = (row.temp, row.persistent)
    host, accelerator = (sizes, (0, 0)) if device.is_cpu else ((0, 0), sizes)
    totals = (row.requested, row.peak, row.residual, row.output, row.in_use)
    return MemoryRecord(row.start + row.duration, *host, *accelerator, *totals, outputs, row.outputs)


def _devices(names: pa.Table) -> dict[int, _Device]:
    rows = device_rows(names)
    pairs: Any = zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True)
    return {number: _Device.from_name(text) for number, text in pairs}


def _rows(ops: pa.Table, traces: pa.Table) -> Iterator[_Row]:
    """Yield the executions of ``traces`` in order; sums wrap like the rollup's."""
    positions = pc.index_in(flat(ops["trace"]), value_set=flat(traces["trace"]))
    selected_ops = ops.select(list(COLUMNS)).filter(pc.is_valid(positions))
    column = {name: flat(selected_ops[name]) for name in COLUMNS}
    start_ns = pc.add(flat(traces["base_ns"]).take(positions.drop_null()), column["start_ns"])
    end_ns = pc.add(start_ns, pc.add(column["op_start_ns"], column["op_end_ns"]))
    start_us = floor_divide(start_ns, 1000)
    held_bytes = pc.add(column["persistent_bytes"], column["temp_bytes"])
    values: Iterable[Any] = (
        column["trace"],
        column["node"],
        column["device"],
        pc.add(start_us, column["start_us_fix"]),
        pc.add(pc.subtract(floor_divide(end_ns, 1000), start_us), column["end_us_fix"]),
        pc.add(column["total_bytes"], held_bytes),
        pc.add(column["peak_bytes"], held_bytes),
        pc.add(column["live_bytes"], column["persistent_bytes"]),
        column["output_bytes"],
        column["in_use_bytes"],
        column["temp_bytes"],
        column["persistent_bytes"],
        column["outputs"],
    )
    return map(_Row._make, zip(*(integers(value) for value in values), strict=True))


def _outputs(table: pa.Table) -> dict[tuple[int, int, int, int], dict[int, Output]]:
    """Return the outputs by slot of each execution (trace, node, device, execution).

    If a slot has several rows, the last one is used.
    """
    outputs: dict[tuple[int, int, int, int], dict[int, Output]] = {}
    rows = row_tuples(table, "trace", "node", "device", "execution", "slot", "bytes", "ptr")
    for *key, slot, size, pointer in rows:
        outputs.setdefault(tuple(key), {})[slot] = (size, pointer)
    return outputs


def _add_allocations(
    by_node: Mapping[int, EntriesByStep],
    table: pa.Table,
    steps: Mapping[int, int],
    devices: Mapping[int, _Device],
    canonical_names: Mapping[int, str],
) -> None:
    """Add to each entry the allocations of its node on its canonical device."""
    for trace, node, device, t_us, size in row_tuples(table, "trace", "node", "device", "t_us", "bytes"):
        if trace in steps and devices[device].name == canonical_names.get(node):
            by_node[node][steps[trace]].allocations.append((t_us, size))
