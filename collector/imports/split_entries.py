"""Splits an entry of a ProfileProto into executions.

An entry holds the executions of one node in one step. The TF profiler would make the same entry
from the resulting executions.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..proto.tensorflow_pb2 import NodeExecStats
from ..proto.tfprof_log_pb2 import ExecMemory, ExecProfile, ProfileNode
from ..store.devices import can_be_canonical
from ..tfviews.entries import Interval
from ..tfviews.nodes import STREAM, wrap_int64
from .files import NotRepresentableError, text_of
from .steps import COLON_SUBSTITUTE

#: Substring of the names of GPU allocators, by which the TF profiler recognizes them.
_GPU_ALLOCATOR: Final = "GPU"
_CPU_ALLOCATOR: Final = "cpu"


def _pair(time: Any) -> Interval:
    """Return start and duration; (0, 0) if ``time`` does not have two numbers."""
    start, duration = time.int64_values if len(time.int64_values) == 2 else (0, 0)
    return start, duration


class _Entry:
    """One entry; ``refusal`` returns the error for an entry that cannot be split."""

    def __init__(self, node: ProfileNode, step: int, path: str) -> None:
        self.name = text_of(node.name, path)
        self.canonical_device = text_of(node.canonical_device, path)
        self.exec: ExecProfile = node.execs[step]
        self.devices = [text_of(device, path) for device in self.exec.devices]
        self.pairs: dict[str, list[Interval]] = {
            device: list(map(_pair, times.times))
            for times_by_device in (self.exec.accelerator_execs, self.exec.cpu_execs)
            for device, times in times_by_device.items()
        }
        self._where = f"{path}: {self.name!r} in step {step}"

    def refusal(self, reason: str) -> NotRepresentableError:
        return NotRepresentableError(f"{self._where}: {reason}")

    def stats(self, start: int = 0, duration: int = 0) -> Any:
        return NodeExecStats(
            node_name=self.name.replace(":", COLON_SUBSTITUTE), all_start_micros=start, op_end_rel_micros=duration
        )


def executions(node: ProfileNode, step: int, path: str) -> Iterator[tuple[str, Any]]:
    """Yield (device, NodeExecStats) for each execution of ``node`` in ``step``.

    NotRepresentableError if the entry cannot be split.
    """
    entry = _Entry(node, step, path)
    _check(entry)
    canonical_pairs = entry.pairs.get(entry.canonical_device, [])
    for number, (pair, memory) in enumerate(zip(canonical_pairs, entry.exec.memory_execs, strict=True)):
        yield entry.canonical_device, _with_memory(entry, pair, memory, is_first=not number)
    for device, pairs in entry.pairs.items():
        if device != entry.canonical_device:
            yield from ((device, entry.stats(*pair)) for pair in pairs)
    untimed_devices = [device for device in entry.devices if not entry.pairs.get(device)]
    other_device = next(
        (device for device in untimed_devices if device != entry.canonical_device and STREAM not in device), ""
    )
    for start, duration in _unrecorded_pairs(entry, has_device=bool(other_device)):
        yield other_device, entry.stats(start, duration)
    yield from ((device, entry.stats()) for device in untimed_devices)


def _check(entry: _Entry) -> None:
    if COLON_SUBSTITUTE in entry.name:
        raise entry.refusal("its name has the character that replaces colons during an import")
    record, canonical, devices = entry.exec, entry.canonical_device, set(entry.devices)
    is_impossible = (
        not devices
        or any(can_be_canonical(device.encode()) and device != canonical for device in devices)
        or not set(entry.pairs) <= devices
        or any(device != device.lower() for device in record.devices)
        or any(device != canonical or STREAM in device for device in record.cpu_execs)
        or any(STREAM not in device for device in record.accelerator_execs)
        or any(start <= 0 or not duration for pairs in entry.pairs.values() for start, duration in pairs)
        or record.run_count != sum(len(times.times) for times in record.cpu_execs.values())
        or len(record.memory_execs) != len(entry.pairs.get(canonical, []))
        or (record.allocations and not record.memory_execs)
        or any(memory.allocator_bytes_in_use < 0 for memory in record.memory_execs)
    )
    if is_impossible:
        raise entry.refusal("its devices, times and memory contradict each other")


def _with_memory(entry: _Entry, pair: Interval, memory: ExecMemory, *, is_first: bool) -> Any:
    start, duration = pair
    memory_duration = wrap_int64(memory.memory_micros - start)
    if memory_duration != duration and (memory_duration, duration) != (0, 1):
        raise entry.refusal(f"it ran for {duration} µs, but its memory record says {memory_duration} µs")
    on_cpu = "cpu" in entry.canonical_device
    host = memory.host_temp_bytes, memory.host_persistent_bytes
    accelerator = memory.accelerator_temp_bytes, memory.accelerator_persistent_bytes
    (temp, persistent), other_memory = (host, accelerator) if on_cpu else (accelerator, host)
    if any(other_memory):
        raise entry.refusal(
            f"it has temporary or persistent memory on another kind of device than {entry.canonical_device}"
        )
    stats = entry.stats(start, memory_duration)
    if temp or persistent:
        stats.memory_stats.temp_memory_size, stats.memory_stats.persistent_memory_size = temp, persistent
    sizes = {
        "total_bytes": wrap_int64(memory.requested_bytes - persistent - temp),
        "peak_bytes": wrap_int64(memory.peak_bytes - persistent - temp),
        "live_bytes": wrap_int64(memory.residual_bytes - persistent),
        "allocator_bytes_in_use": memory.allocator_bytes_in_use,
    }
    records = entry.exec.allocations if is_first else ()
    if records or any(sizes.values()):
        on_gpu = bool(records) or memory.allocator_bytes_in_use > 0
        allocator = stats.memory.add(allocator_name=_GPU_ALLOCATOR if on_gpu else _CPU_ALLOCATOR, **sizes)
        for record in records:
            allocator.allocation_records.add(alloc_micros=record.alloc_micros, alloc_bytes=record.alloc_bytes)
    _add_outputs(entry, stats, memory)
    return stats


def _add_outputs(entry: _Entry, stats: Any, memory: ExecMemory) -> None:
    """Add outputs to ``stats`` that have the sizes in ``memory``.

    ``memory`` contains the last output of each slot, and the total bytes of all outputs. If the
    total is not the sum of the last outputs, a further output gets the difference.
    """
    last_outputs = memory.output_memory
    difference = wrap_int64(memory.output_bytes - sum(output.bytes for output in last_outputs.values()))
    if difference and not last_outputs:
        raise entry.refusal("it has output bytes, but no outputs")
    outputs = [(next(iter(last_outputs)), difference, 0)] if difference else []
    outputs += [(slot, output.bytes, output.ptr) for slot, output in last_outputs.items()]
    for slot, size, pointer in outputs:
        description = stats.output.add(slot=slot).tensor_description.allocation_description
        description.requested_bytes, description.allocated_bytes, description.ptr = size, size, pointer


def _unrecorded_pairs(entry: _Entry, *, has_device: bool) -> Sequence[Interval]:
    """Return start and duration of executions whose times the entry lacks.

    These are memory copies and work of the host. They account for the entry's first start and last
    end. ``has_device``: whether the entry has a device for them.
    """
    pairs = [pair for pairs in entry.pairs.values() for pair in pairs]
    first_start, last_end = entry.exec.all_start_micros, entry.exec.latest_end_micros
    recorded_start = min((start for start, _ in pairs), default=0)
    recorded_end = max([0, *(start + duration for start, duration in pairs)])
    if (first_start, last_end) == (recorded_start, recorded_end):
        return ()
    is_inside = not pairs or (first_start <= recorded_start and last_end >= recorded_end)
    if not has_device:
        raise entry.refusal("its first start and last end include an execution on a device that it does not list")
    if first_start <= 0 or first_start == last_end or not is_inside:
        raise entry.refusal("its times do not lie between its first start and its last end")
    return ((first_start, last_end - first_start),)
