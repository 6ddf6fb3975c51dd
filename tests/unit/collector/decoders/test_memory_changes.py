"""The memory events of a profiler session become allocations and frees with their ops."""

from fakes.xspaces import BEGAN_NS, Plane, session
from tfprof.collector.decoders.interner import Interner
from tfprof.collector.decoders.xspace import xspace
from tfprof.collector.store.schema import NODE, NONE_ID, OUTPUT_BLOCK, TEMPORARY_BLOCK

ALLOCATED, FREED = b"MemoryAllocation", b"MemoryDeallocation"


def changes(*events):
    interner = Interner()
    data = session(Plane().line((b"w:MatMul", 0, 50), *events)).SerializeToString()
    tables = xspace(data, BEGAN_NS, 3, interner).memory
    rows = [
        {**row, **address}
        for row, address in zip(tables.changes.to_pylist(), tables.addresses.to_pylist(), strict=True)
    ]
    for row in rows:
        row["node"] = None if row["node"] == NONE_ID else interner.table.get(NODE, row["node"])
        row["t_us"] -= BEGAN_NS // 1000
    return [tuple(row[name] for name in ("node", "t_us", "bytes", "in_use_bytes", "use", "address")) for row in rows]


def stats(**values):
    return {b"allocator_name": b"cpu", **{name.encode(): value for name, value in values.items()}}


def test_a_free_belongs_to_the_op_that_allocated_the_block():
    output = stats(addr=1, allocation_bytes=64, bytes_allocated=100, tf_op=b"w", region_type=b"output")
    scratch = stats(addr=2, allocation_bytes=8, bytes_allocated=108, tf_op=b"w", region_type=b"temp")
    assert changes(
        (ALLOCATED, 10, 10, output),
        (ALLOCATED, 12, 12, scratch),
        (FREED, 14, 14, stats(addr=1, allocation_bytes=64, bytes_allocated=44)),
        (FREED, 16, 16, stats(addr=9, allocation_bytes=4, bytes_allocated=40)),
    ) == [
        (b"w", 10, 64, 100, OUTPUT_BLOCK, 1),
        (b"w", 12, 8, 108, TEMPORARY_BLOCK, 2),
        (b"w", 14, -64, 44, 0, 1),
        (None, 16, -4, 40, 0, 9),
    ]


def test_an_allocator_may_not_know_sizes_when_it_frees():
    assert changes(
        (ALLOCATED, 10, 10, stats(addr=1, requested_bytes=64, tf_op=b"w")),
        (FREED, 11, 11, stats(addr=1)),
        (FREED, 12, 12, stats(addr=2)),
        (ALLOCATED, 13, 13, stats(addr=-1, requested_bytes=16)),
    ) == [(b"w", 10, 64, 0, 0, 1), (b"w", 11, -64, 0, 0, 1), (None, 13, 16, 0, 0, (1 << 64) - 1)]
