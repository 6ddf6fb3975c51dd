"""The blocks of memory that the ops of one traced step allocate: their sizes and times."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..store.schema import ALLOCATOR, DEVICE, NODE
from ..summaries.top import short_device
from ..tfviews.nodes import Node, interned_texts
from .profile import profile
from .required_facts import GRAPH

_US: Final = 1000
_COLUMNS: Final = (
    *("trace", "node", "device", "start_ns", "op_start_ns", "op_end_ns", "allocator", "total_bytes"),
    *("temp_bytes", "persistent_bytes", "output_bytes"),
)


class Block(NamedTuple):
    """Memory that a node holds; times are real times in ns."""

    node: str
    op: str
    start_ns: int
    end_ns: int
    bytes: int


class Memory(NamedTuple):
    """The blocks on one device from one allocator, in order of their starts.

    ``is_recorded``: TensorFlow recorded each allocation and each free. Otherwise it recorded how
    much each op allocated: an output is then taken to live until the last op that uses it has
    ended, and the rest until the op itself has.
    """

    device: str
    allocator: str
    is_recorded: bool
    blocks: Sequence[Block]


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
    # Ops that only keep memory for themselves have no allocator: they use that of their device.
    defaults = {row.device: names[ALLOCATOR][row.allocator] for row in rows if row.allocator in names[ALLOCATOR]}
    allocators = {
        (row.node, row.device): names[ALLOCATOR].get(row.allocator, defaults.get(row.device, "")) for row in rows
    }
    recorded = _recorded(executions.allocations, names[NODE], nodes, start_ns, end_ns)
    recorded_keys = {(at_device, allocators.get((node, at_device), "")) for node, at_device in recorded}
    groups: dict[tuple[str, str, bool], list[Block]] = defaultdict(list)
    for (node, at_device), blocks in recorded.items():
        key = (short_device(names[DEVICE].get(at_device, "")), allocators.get((node, at_device), ""), True)
        groups[key] += blocks
    last_uses = _last_uses(rows, names[NODE], nodes)
    for row in rows:
        allocator = allocators[row.node, row.device]
        if row.requested > 0 and (row.device, allocator) not in recorded_keys:
            key = (short_device(names[DEVICE].get(row.device, "")), allocator, False)
            groups[key] += _estimated(row, nodes[names[NODE][row.node]], last_uses)
    found = [Memory(*key, sorted(blocks, key=lambda block: block.start_ns)) for key, blocks in groups.items()]
    return sorted(found, key=lambda memory: -peak(memory.blocks).bytes)


class _Row(NamedTuple):
    node: int
    device: int
    start_ns: int
    end_ns: int
    allocator: int
    requested: int
    output: int


def _rows(ops: pa.Table, traces: pa.Table) -> Iterator[_Row]:
    """Yield the executions with a start."""
    bases = dict(row_tuples(traces, "trace", "base_ns"))
    for trace, node, device, start, op_start, op_end, allocator, *sizes in row_tuples(ops, *_COLUMNS):
        if trace in bases and bases[trace] + start > 0:
            began = bases[trace] + start
            total, temp, persistent, output = sizes
            yield _Row(
                node, device, began, began + max(op_start + op_end, 1), allocator, total + temp + persistent, output
            )


def _nodes(job: JobReader, kinds: Sequence[int], device: str | None) -> dict[str, Node]:
    job_profile = profile(job, kinds=kinds, device=device, averaged=False, required_facts=frozenset({GRAPH}))
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


def _recorded(
    table: pa.Table, names: Mapping[int, str], nodes: Mapping[str, Node], start_ns: int, end_ns: int
) -> dict[tuple[int, int], list[Block]]:
    """Return the blocks of each (node, device) from its records; a free has negative bytes.

    A block that is not freed in the step lives to its end; one that was there before, from its
    start.
    """
    records: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for node, device, t_us, size in row_tuples(table, "node", "device", "t_us", "bytes"):
        if names.get(node) in nodes and size:
            records[node, device].append((t_us * _US, size))
    blocks: dict[tuple[int, int], list[Block]] = {}
    for key, entries in records.items():
        node = nodes[names[key[0]]]
        open_blocks: dict[int, list[int]] = defaultdict(list)
        found = blocks[key] = []
        for time_ns, size in sorted(entries, key=lambda entry: (entry[0], -entry[1])):
            if size > 0:
                open_blocks[size].append(time_ns)
            else:
                starts = open_blocks[-size]
                found.append(
                    Block(node.name, node.op, starts.pop(0) if starts else min(start_ns, time_ns), time_ns, -size)
                )
        last_ns = max(end_ns, *(time for time, _ in entries))
        found += [
            Block(node.name, node.op, start, last_ns, size) for size, starts in open_blocks.items() for start in starts
        ]
    return blocks


class Peak(NamedTuple):
    """The moment with the most bytes alive (real ns), these bytes, and their blocks."""

    time_ns: int
    bytes: int
    holders: Sequence[Block]


def peak(blocks: Sequence[Block]) -> Peak:
    """Return the first moment at which most bytes are alive; a block is not alive at its end."""
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
