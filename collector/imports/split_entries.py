"""Splits an entry of a ProfileProto into executions.

An entry holds the executions of one node in one step. The TF profiler would make the same entry
from the resulting executions.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..proto.tensorflow_pb2 import NodeExecStats
from ..proto.tfprof_log_pb2 import ExecMemory, ExecProfile, ProfileNode
from ..store.devices import is_canonical
from ..tfviews.entries import Pair
from ..tfviews.nodes import STREAM, wrap_int64
from .files import NotRepresentableError, text_of
from .steps import COLON

#: Substring of the names of GPU allocators, by which the TF profiler recognizes them.
_GPU_ALLOCATOR: Final = "GPU"
_ALLOCATOR: Final = "cpu"


def _pair(time: Any) -> Pair:
    """Return start and duration; (0, 0) if ``time`` does not have two numbers."""
    start, duration = time.int64_values if len(time.int64_values) == 2 else (0, 0)
    return start, duration


class _Entry:
    """One entry; ``refuse`` returns the error for an entry that cannot be split."""

    def __init__(self, node: ProfileNode, step: int, path: str) -> None:
        self.name = text_of(node.name, path)
        self.own = text_of(node.canonical_device, path)
        self.exec: ExecProfile = node.execs[step]
        self.devices = [text_of(one, path) for one in self.exec.devices]
        self.pairs: dict[str, list[Pair]] = {
            name: list(map(_pair, time.times))
            for times in (self.exec.accelerator_execs, self.exec.cpu_execs)
            for name, time in times.items()
        }
        self._where = f"{path}: {self.name!r} in step {step}"

    def refuse(self, what: str) -> NotRepresentableError:
        return NotRepresentableError(f"{self._where}: {what}")

    def stats(self, start: int = 0, lasted: int = 0) -> Any:
        return NodeExecStats(node_name=self.name.replace(":", COLON), all_start_micros=start, op_end_rel_micros=lasted)


def executions(node: ProfileNode, step: int, path: str) -> Iterator[tuple[str, Any]]:
    """Yield (device, NodeExecStats) for each execution of ``node`` in ``step``.

    NotRepresentableError if the entry cannot be split.
    """
    entry = _Entry(node, step, path)
    _check(entry)
    own = entry.pairs.get(entry.own, [])
    for number, (pair, memory) in enumerate(zip(own, entry.exec.memory_execs, strict=True)):
        yield entry.own, _with_memory(entry, pair, memory, first=not number)
    for device, pairs in entry.pairs.items():
        if device != entry.own:
            yield from ((device, entry.stats(*pair)) for pair in pairs)
    rest = [device for device in entry.devices if not entry.pairs.get(device)]
    timed = next((device for device in rest if device != entry.own and STREAM not in device), "")
    for start, lasted in _unrecorded(entry, has_room=bool(timed)):
        yield timed, entry.stats(start, lasted)
    yield from ((device, entry.stats()) for device in rest)


def _check(entry: _Entry) -> None:
    devices = set(entry.devices)
    strange = {device for device in devices if is_canonical(device.encode()) and device != entry.own}
    of_others = [device for device in entry.exec.cpu_execs if device != entry.own or STREAM in device]
    kernels = [device for device in entry.exec.accelerator_execs if STREAM not in device]
    wrong = (
        (COLON in entry.name, "its name has the character that replaces colons during an import"),
        (not devices, "it ran on no device"),
        (bool(strange), f"it ran on {sorted(strange)}, but belongs to another device"),
        (not set(entry.pairs) <= devices, "it has times on devices on which it did not run"),
        (any(one != one.lower() for one in entry.exec.devices), "its devices are not in lower case"),
        (bool(of_others), f"it has CPU times on {of_others}"),
        (bool(kernels), f"it has accelerator times on {kernels}"),
        (
            any(pair[0] <= 0 or not pair[1] for pairs in entry.pairs.values() for pair in pairs),
            "a time lacks start or duration",
        ),
        (
            entry.exec.run_count != sum(len(time.times) for time in entry.exec.cpu_execs.values()),
            "its number of runs is wrong",
        ),
        (
            len(entry.exec.memory_execs) != len(entry.pairs.get(entry.own, [])),
            "it does not have one memory record per run",
        ),
        (bool(entry.exec.allocations) and not entry.exec.memory_execs, "it has allocations, but did not run"),
        (any(memory.allocator_bytes_in_use < 0 for memory in entry.exec.memory_execs), "fewer than 0 bytes in use"),
    )
    for is_wrong, what in wrong:
        if is_wrong:
            raise entry.refuse(what)


def _with_memory(entry: _Entry, pair: Pair, memory: ExecMemory, *, first: bool) -> Any:
    start, duration = pair
    lasted = wrap_int64(memory.memory_micros - start)
    if lasted != duration and (lasted, duration) != (0, 1):
        raise entry.refuse(f"it ran for {duration} µs, but its memory record says {lasted} µs")
    on_cpu = "cpu" in entry.own
    host = memory.host_temp_bytes, memory.host_persistent_bytes
    accelerator = memory.accelerator_temp_bytes, memory.accelerator_persistent_bytes
    (temp, persistent), other = (host, accelerator) if on_cpu else (accelerator, host)
    if any(other):
        raise entry.refuse(f"it has temporary or persistent memory on another kind of device than {entry.own}")
    stats = entry.stats(start, lasted)
    if temp or persistent:
        stats.memory_stats.temp_memory_size, stats.memory_stats.persistent_memory_size = temp, persistent
    sizes = {
        "total_bytes": wrap_int64(memory.requested_bytes - persistent - temp),
        "peak_bytes": wrap_int64(memory.peak_bytes - persistent - temp),
        "live_bytes": wrap_int64(memory.residual_bytes - persistent),
        "allocator_bytes_in_use": memory.allocator_bytes_in_use,
    }
    records = entry.exec.allocations if first else ()
    if records or any(sizes.values()):
        on_gpu = bool(records) or memory.allocator_bytes_in_use > 0
        used = stats.memory.add(allocator_name=_GPU_ALLOCATOR if on_gpu else _ALLOCATOR, **sizes)
        for record in records:
            used.allocation_records.add(alloc_micros=record.alloc_micros, alloc_bytes=record.alloc_bytes)
    _add_outputs(entry, stats, memory)
    return stats


def _add_outputs(entry: _Entry, stats: Any, memory: ExecMemory) -> None:
    """Add outputs to ``stats`` that have the sizes in ``memory``.

    ``memory`` contains the last output of each slot, and the total of all outputs. If the total is
    not their sum, one more output has the difference.
    """
    known = memory.output_memory
    rest = wrap_int64(memory.output_bytes - sum(one.bytes for one in known.values()))
    if rest and not known:
        raise entry.refuse("it has output bytes, but no outputs")
    sizes = [(next(iter(known)), rest, 0)] if rest else []
    for slot, size, pointer in [*sizes, *((slot, one.bytes, one.ptr) for slot, one in known.items())]:
        output = stats.output.add(slot=slot)
        recorded = output.tensor_description.allocation_description
        recorded.requested_bytes, recorded.allocated_bytes, recorded.ptr = size, size, pointer


def _unrecorded(entry: _Entry, *, has_room: bool) -> Sequence[Pair]:
    """Return start and duration of executions whose times the entry lacks: copies, and host work.

    They account for the entry's first start and last end. ``has_room``: whether the entry has a
    device for them.
    """
    pairs = [pair for pairs in entry.pairs.values() for pair in pairs]
    begins, ends = entry.exec.all_start_micros, entry.exec.latest_end_micros
    recorded = min((start for start, _ in pairs), default=0), max([0, *(start + lasted for start, lasted in pairs)])
    if (begins, ends) == recorded:
        return ()
    if not has_room or begins <= 0 or (pairs and (begins > recorded[0] or ends < recorded[1])):
        raise entry.refuse("its times do not lie between its first start and its last end")
    if begins == ends:
        # The TF profiler takes a duration of 0 as 1, so two negative durations represent 0.
        return (begins, -1), (begins + 1, -1)
    return ((begins, ends - begins),)
