"""The memory that allocators report in a profiler session: each allocation and each free."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from ..store.schema import ALLOCATOR, NODE, NONE_ID, OUTPUT_BLOCK, PERSISTENT_BLOCK, TEMPORARY_BLOCK
from .columns import from_rows, saturated
from .interner import Interner

#: The events, and the sign of the change of memory.
SIGNS: Final = {b"MemoryAllocation": 1, b"MemoryDeallocation": -1}
FRAGMENTATION: Final = b"fragmentation"
_PS_PER_US: Final = 1_000_000
#: Number of addresses: a job may report any number.
_ADDRESSES: Final = 1 << 64
_USES: Final[Mapping[object, int]] = {b"output": OUTPUT_BLOCK, b"temp": TEMPORARY_BLOCK, b"persist": PERSISTENT_BLOCK}


class MemoryEvent(NamedTuple):
    """An event of an allocator: its time (ps, real time), its sign, and what it reports.

    ``bytes``, ``in_use`` and ``use`` are 0 if they are not reported.
    """

    time_ps: int
    sign: int
    node: bytes
    allocator: bytes
    address: int
    bytes: int
    in_use: int
    use: int
    fragmentation: float


def memory_event(
    time_ps: int, name: bytes, node: bytes, stats: Mapping[bytes, bytes | int], fragmentation: float
) -> MemoryEvent:
    """Return the event called ``name`` with ``stats`` by name."""
    size = number_in(stats, b"allocation_bytes") or number_in(stats, b"requested_bytes")
    allocator = stats.get(b"allocator_name", b"")
    return MemoryEvent(
        time_ps,
        SIGNS[name],
        node,
        allocator if isinstance(allocator, bytes) else b"",
        number_in(stats, b"addr") % _ADDRESSES,
        size,
        number_in(stats, b"bytes_allocated"),
        _USES.get(stats.get(b"region_type"), 0),
        fragmentation,
    )


class MemoryRows(NamedTuple):
    """Rows of MEMORY_CHANGES, and their BLOCK_ADDRESSES."""

    changes: pa.RecordBatch
    addresses: pa.RecordBatch


def memory_rows(events: Iterable[MemoryEvent], trace: int, interner: Interner) -> MemoryRows:
    """Return the rows of ``events`` in the step with trace number ``trace``.

    A free belongs to the op that allocated the block at this address. The free of a block from
    before the session is left out if the allocator does not know its size. NamesFullError if there
    are too many names.
    """
    rows, addresses = [], []
    blocks: dict[tuple[int, int], tuple[int, int]] = {}  # (allocator, address) -> (node, bytes)
    for event in sorted(events, key=lambda event: event.time_ps):
        size, allocator = event.bytes, interner.id(ALLOCATOR, event.allocator)
        block = allocator, event.address
        if event.sign > 0:
            node = interner.id(NODE, event.node) if event.node else NONE_ID
            blocks[block] = node, size
        else:
            node, allocated = blocks.pop(block, (NONE_ID, 0))
            size = allocated or size
        if not size:
            continue
        times_and_sizes = map(saturated, (event.time_ps // _PS_PER_US, event.sign * size, event.in_use))
        rows.append((trace, node, NONE_ID, allocator, *times_and_sizes, event.fragmentation, event.use))
        addresses.append((trace, event.address))
    return MemoryRows(from_rows(rows, "memory_changes"), from_rows(addresses, "block_addresses"))


def number_in(stats: Mapping[bytes, bytes | int], key: bytes) -> int:
    """Return the number in the statistics of an event, 0 without one."""
    value = stats.get(key, 0)
    return value if isinstance(value, int) else 0
