"""The blocks of memory that the ops of one traced step allocate: their sizes and times."""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..store.columns import flat, pc, repeat, row_tuples
from ..store.protocols import JobReader
from ..store.schema import ALLOCATOR, DEVICE, NODE, NONE_ID, OUTPUT_BLOCK, PERSISTENT_BLOCK, TEMPORARY_BLOCK
from ..summaries.top import short_device
from ..tfviews.nodes import Node, interned_texts
from .facts import GRAPH
from .job_selection import Selection
from .profile import profile

_US: Final = 1000
_GPU_ALLOCATOR: Final = re.compile(r"GPU_(\d+)_")
_GPU_DEVICE: Final = re.compile(r"gpu:\d+\Z", re.IGNORECASE)
_COLUMNS: Final = (
    *("trace", "node", "device", "start_ns", "op_start_ns", "op_end_ns", "allocator", "total_bytes"),
    *("temp_bytes", "persistent_bytes", "output_bytes"),
)


class Block(NamedTuple):
    """Memory that a node holds; times are real times in ns.

    ``node`` and ``op`` are empty if the node is unknown: the block was there before the step.
    ``use``: schema.OUTPUT_BLOCK, TEMPORARY_BLOCK or PERSISTENT_BLOCK; 0 if it is unknown.
    ``address``: 0 if it is not recorded.
    """

    node: str
    op: str
    start_ns: int
    end_ns: int
    bytes: int
    use: int = 0
    address: int = 0


class Memory(NamedTuple):
    """The blocks on one device from one allocator, in order of their starts.

    ``is_recorded``: TensorFlow recorded each allocation and each free. Otherwise it recorded how
    much each op allocated. An output is then assumed to live until the last op that uses it has
    ended, and other memory until the op itself has ended. ``before_bytes``: the memory that the
    allocator had in use before the step and does not free in it, None if it does not say.
    ``fragmentation``: by time (ns), as far as the allocator says. ``number``: the id of the device,
    NONE_ID in profiler sessions.
    """

    device: str
    allocator: str
    is_recorded: bool
    number: int
    blocks: Sequence[Block]
    before_bytes: int | None = None
    fragmentation: Sequence[tuple[int, float]] = ()


def memories(job: JobReader, traces: pa.Table, kinds: Sequence[int], device: str | None = None) -> list[Memory]:
    """Return the memory of a step (its TRACES), the device with most bytes first.

    ``kinds``: its kind; ``device``: only devices with this text in their names.
    """
    numbers = [trace for (trace,) in row_tuples(traces, "trace")]
    executions = job.executions(numbers, _COLUMNS)
    names = {kind: interned_texts(executions.names, kind) for kind in (NODE, DEVICE, ALLOCATOR)}
    end_ns = max(start + duration for start, duration in row_tuples(traces, "start_ns", "duration_ns"))
    start_ns = min(start for (start,) in row_tuples(traces, "start_ns"))
    nodes = _nodes(job, kinds, device)
    rows = [row for row in _rows(executions.ops, executions.traces) if names[NODE].get(row.node) in nodes]
    allocators = _allocators(rows, names[ALLOCATOR])
    hosts = host_devices(names[DEVICE])
    addresses = _Addresses(job.rows_of_traces("block_addresses", numbers))
    changes = [
        *(
            change._replace(device=hosts.get(change.device, change.device))
            for change in _changes(job.rows_of_traces("memory_changes", numbers), names[ALLOCATOR], addresses)
        ),
        *_gpu_changes(executions.allocations, allocators, addresses),
    ]
    if device is not None:
        changes = [change for change in changes if names[NODE].get(change.node) in nodes]
    found = []
    for (at_device, allocator), group in _grouped(changes).items():
        blocks = _recorded(group, rows, names[NODE], nodes, (start_ns, end_ns))
        levels = [(change.t_ns, change.fragmentation) for change in group if change.fragmentation]
        place = device_of(names[DEVICE].get(at_device, ""), allocator)
        found.append(Memory(place, allocator, True, at_device, blocks, _before(group), levels))
    recorded_keys = {(memory.device, memory.allocator) for memory in found}
    last_uses = _last_uses(rows, names[NODE], nodes)
    estimates: dict[tuple[int, str], list[Block]] = defaultdict(list)
    for row in rows:
        allocator = allocators[row.node, row.device]
        number = row.device if "GPU" in allocator else hosts.get(row.device, row.device)
        place = device_of(names[DEVICE].get(number, ""), allocator)
        if row.requested > 0 and (place, allocator) not in recorded_keys:
            estimates[number, allocator] += _estimated(row, nodes[names[NODE][row.node]], last_uses)
    found += [
        Memory(
            device_of(names[DEVICE].get(number, ""), allocator), allocator, False, number, sorted(blocks, key=_start)
        )
        for (number, allocator), blocks in estimates.items()
    ]
    return sorted(found, key=lambda memory: -peak(memory.blocks).bytes)


def _allocators(rows: Sequence["_Row"], names: Mapping[int, str]) -> dict[tuple[int, int], str]:
    """Return the allocator of each (node, device).

    Ops that only keep memory for themselves have no allocator, and get that of their device.
    """
    defaults = {row.device: names[row.allocator] for row in rows if row.allocator in names}
    return {(row.node, row.device): names.get(row.allocator, defaults.get(row.device, "")) for row in rows}


def _start(block: Block) -> int:
    return block.start_ns


class _Row(NamedTuple):
    node: int
    device: int
    start_ns: int
    end_ns: int
    allocator: int
    requested: int
    output: int
    persistent: int


def _rows(ops: pa.Table, traces: pa.Table) -> Iterator[_Row]:
    """Yield the executions with a start."""
    bases = dict(row_tuples(traces, "trace", "base_ns"))
    for trace, node, device, start, op_start, op_end, allocator, *sizes in row_tuples(ops, *_COLUMNS):
        if trace in bases and bases[trace] + start > 0:
            began = bases[trace] + start
            total, temp, persistent, output = sizes
            ended = began + max(op_start + op_end, 1)
            yield _Row(node, device, began, ended, allocator, total + temp + persistent, output, persistent)


def _nodes(job: JobReader, kinds: Sequence[int], device: str | None) -> dict[str, Node]:
    selection = Selection((job,), device=device, kinds=tuple(kinds))
    job_profile = profile(selection, required_facts=frozenset({GRAPH}), averaged=False)
    return {node.name: node for node in job_profile.nodes} if job_profile else {}


def _last_uses(rows: Sequence[_Row], names: Mapping[int, str], nodes: Mapping[str, Node]) -> dict[str, int]:
    """Return the end of the last execution that uses an output of each node."""
    last: dict[str, int] = {}
    for row in rows:
        for source in nodes[names[row.node]].facts.inputs:
            last[source] = max(last.get(source, 0), row.end_ns)
    return last


def _estimated(row: _Row, node: Node, last_uses: Mapping[str, int]) -> Iterator[Block]:
    kept = min(row.requested, row.output)
    if kept > 0:
        yield Block(node.name, node.op, row.start_ns, max(row.end_ns, last_uses.get(node.name, 0)), kept)
    if row.requested > max(kept, 0):
        yield Block(node.name, node.op, row.start_ns, row.end_ns, row.requested - max(kept, 0))


class _Change(NamedTuple):
    """An allocation, or a free of negative ``bytes``; ``in_use``, ``address``: 0 if unknown."""

    node: int
    device: int
    allocator: str
    t_ns: int
    bytes: int
    in_use: int = 0
    fragmentation: float = 0.0
    use: int = 0
    address: int = 0


class _Addresses:
    """The BLOCK_ADDRESSES of several traces."""

    def __init__(self, table: pa.Table) -> None:
        by_trace: dict[int, list[int]] = defaultdict(list)
        for trace, address in row_tuples(table, "trace", "address"):
            by_trace[trace].append(address)
        self._by_trace = {trace: iter(addresses) for trace, addresses in by_trace.items()}

    def next(self, trace: int) -> int:
        """Return the address of the next change of ``trace``, 0 if it is not recorded."""
        return next(self._by_trace.get(trace, iter(())), 0)


def _gpu_changes(
    table: pa.Table, allocators: Mapping[tuple[int, int], str], addresses: _Addresses
) -> Iterator[_Change]:
    """Yield the ALLOCATIONS; the allocator is that of the node."""
    for trace, node, device, t_us, size in row_tuples(table, "trace", "node", "device", "t_us", "bytes"):
        allocator = allocators.get((node, device), "")
        yield _Change(node, device, allocator, t_us * _US, size, address=addresses.next(trace))


def _changes(table: pa.Table, allocators: Mapping[int, str], addresses: _Addresses) -> Iterator[_Change]:
    columns = ("trace", "node", "device", "allocator", "t_us", "bytes", "in_use_bytes", "fragmentation", "use")
    for trace, node, device, number, t_us, size, in_use, fragmentation, use in row_tuples(table, *columns):
        allocator, address = allocators.get(number, ""), addresses.next(trace)
        yield _Change(node, device, allocator, t_us * _US, size, in_use, fragmentation, use, address)


def _grouped(changes: Sequence[_Change]) -> dict[tuple[int, str], list[_Change]]:
    """Return the changes by device and allocator, in order of time."""
    groups: dict[tuple[int, str], list[_Change]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change.t_ns):
        if change.bytes:
            groups[change.device, change.allocator].append(change)
    return groups


def device_of(device: str, allocator: str) -> str:
    """Return the short name of a device. Profiler sessions name the allocator only."""
    if device:
        return short_device(device)
    gpu = _GPU_ALLOCATOR.match(allocator)
    return f"GPU:{gpu[1]}" if gpu else "CPU:0"


def host_devices(devices: Mapping[int, str]) -> dict[int, int]:
    """Return GPU -> CPU of the same process, by their ids.

    Ops on a GPU have some of their memory on the host.
    """
    numbers = {name: number for number, name in devices.items()}
    hosts = {
        number: numbers.get(_GPU_DEVICE.sub("CPU:0", name), numbers.get(_GPU_DEVICE.sub("cpu:0", name), number))
        for number, name in devices.items()
        if _GPU_DEVICE.search(name)
    }
    return {number: host for number, host in hosts.items() if host != number}


def memory_peaks(job: JobReader, numbers: Sequence[int], hosts: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """Yield (trace, device, allocator, peak in bytes) of the traces ``numbers``, by their ids.

    The peaks are those of `JobReader.memory_levels`, without SQL: they need the memory of these
    traces only. ``hosts``: GPU -> CPU of the same process.
    """
    for name in ("memory_changes", "allocations"):
        table = job.rows_of_traces(name, numbers)
        column: dict[str, Any] = {key: flat(table[key]) for key in ("trace", "device", "t_us", "bytes")}
        if name == "allocations":
            column |= {"allocator": repeat(NONE_ID, len(table), pa.uint32())}
            column |= {"in_use_bytes": repeat(0, len(table), pa.int64())}
        else:
            column |= {key: flat(table[key]) for key in ("allocator", "in_use_bytes")}
            for gpu, host in hosts.items():
                is_gpu = pc.equal(column["device"], pa.scalar(gpu, pa.uint32()))
                column["device"] = pc.if_else(is_gpu, pa.scalar(host, pa.uint32()), column["device"])
        yield from _peaks(pa.table(column))


def _peaks(changes: pa.Table) -> Iterator[tuple[int, ...]]:
    keys = ["trace", "device", "allocator"]
    changes = changes.sort_by([(key, "ascending") for key in (*keys, "t_us", "bytes")])
    changes = changes.append_column("level", pc.cumulative_sum(flat(changes["bytes"])))
    sums: Any = [("level", "max"), ("level", "first"), ("bytes", "first"), ("in_use_bytes", "max")]
    found = pa.TableGroupBy(changes, keys, use_threads=False).aggregate(sums)
    for *key, highest, first, first_bytes, in_use in row_tuples(found, *keys, *("_".join(entry) for entry in sums)):
        peak = in_use if in_use > 0 else highest - first + first_bytes
        if peak > 0:
            yield (*key, peak)


def _before(changes: Sequence[_Change]) -> int | None:
    """Return the bytes in use before the first of ``changes`` that none of them frees."""
    if not changes[0].in_use:
        return None
    freed = sum(change.bytes for change in changes if change.bytes < 0 and change.node == NONE_ID)
    return changes[0].in_use - changes[0].bytes + freed


def _recorded(
    changes: Sequence[_Change],
    rows: Sequence[_Row],
    names: Mapping[int, str],
    nodes: Mapping[str, Node],
    step_ns: tuple[int, int],
) -> list[Block]:
    """Return the blocks of one allocator, by start.

    A block that is not freed in the step lives to the end of the step. A block from before the step
    lives from the start of the step.
    """
    first_ns, last_ns = step_ns[0], max(step_ns[1], changes[-1].t_ns)
    by_node: dict[int, list[_Change]] = defaultdict(list)
    for change in changes:
        by_node[change.node].append(change)
    sizes: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        sizes[row.node][0] += row.output
        sizes[row.node][1] += row.persistent
    found: list[Block] = []
    for number, entries in by_node.items():
        name = names.get(number, "")
        op = nodes[name].op if name in nodes else ""
        lives = _lives(entries, first_ns, last_ns)
        blocks = [Block(name, op, start, end, change.bytes, change.use, change.address) for start, end, change in lives]
        found += _with_uses(blocks, *sizes[number]) if name else blocks
    return sorted(found, key=_start)


def _lives(entries: Sequence[_Change], first_ns: int, last_ns: int) -> Iterator[tuple[int, int, _Change]]:
    """Yield the start and the end of each block of a node, and its allocation.

    The bytes are positive. If the address of a free is unknown, it ends the first block of its
    size.
    """
    has_addresses = any(change.address for change in entries if change.bytes < 0)
    open_blocks: dict[tuple[int, int], deque[_Change]] = defaultdict(deque)
    for change in sorted(entries, key=lambda entry: (entry.t_ns, -entry.bytes)):
        begun = open_blocks[abs(change.bytes), change.address if has_addresses else 0]
        if change.bytes > 0:
            begun.append(change)
        elif begun:
            yield begun[0].t_ns, change.t_ns, begun.popleft()
        else:
            yield min(first_ns, change.t_ns), change.t_ns, change._replace(bytes=-change.bytes)
    for changes in open_blocks.values():
        for change in changes:
            yield change.t_ns, last_ns, change


def _with_uses(blocks: Sequence[Block], output: int, persistent: int) -> Iterator[Block]:
    """Yield the blocks of a node with their use, if it is unknown.

    ``output``, ``persistent``: bytes of the node's outputs, and those that it keeps. The blocks
    that live longest are outputs and persistent memory, as far as their sizes fit. The others are
    temporary.
    """
    for block in sorted(blocks, key=lambda block: -block.end_ns):
        if block.use:
            yield block
        elif block.bytes <= persistent:
            persistent -= block.bytes
            yield block._replace(use=PERSISTENT_BLOCK)
        elif block.bytes <= output:
            output -= block.bytes
            yield block._replace(use=OUTPUT_BLOCK)
        else:
            yield block._replace(use=TEMPORARY_BLOCK)


class Peak(NamedTuple):
    """The moment with the most bytes alive (real ns), these bytes, and their blocks."""

    time_ns: int
    bytes: int
    holders: Sequence[Block]


def peak(blocks: Sequence[Block]) -> Peak:
    """Return the first moment at which the most bytes are alive.

    A block is not alive at its end.
    """
    changes = sorted(
        [
            *((block.start_ns, 1, block.bytes) for block in blocks),
            *((block.end_ns, 0, -block.bytes) for block in blocks),
        ]
    )
    alive = most = at_ns = 0
    for time_ns, _, change in changes:
        alive += change
        if alive > most:
            most, at_ns = alive, time_ns
    holders = [block for block in blocks if block.start_ns <= at_ns < block.end_ns]
    return Peak(at_ns, most, sorted(holders, key=lambda block: -block.bytes))
