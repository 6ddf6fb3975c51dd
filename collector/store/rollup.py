"""The aggregate of ops by node and device: pure, and nothing but columns (schema.ROLLUP)."""

from typing import Any, Final

import pyarrow as pa
from tfprof.collector.store.columns import (
    NULL,
    added_lists,
    changes,
    constant,
    flat,
    integer,
    ordered,
    pc,
    repeat,
    scattered,
    tallied,
)
from tfprof.collector.store.devices import Devices
from tfprof.collector.store.schema import NONE_ID, ROLLUP
from tfprof.collector.store.sums import by_run

EMPTY: Final = ROLLUP.empty_table()
NO_CANONICAL: Final = pa.array([], pa.uint32())

NONE: Final = constant(NONE_ID, pa.uint32())
_SUMS: Final = (
    "sum_us",
    "sum_ns",
    "sum_squares_ns2",
    "wait_ns",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
)
_ADDED: Final = ("traces", "runs", *_SUMS)
_NUMBERS: Final = ("runs", *_SUMS, "min_ns", "max_ns")


def rollup(ops: pa.Table, traces: pa.Table, names: pa.Table, canonical: Any) -> tuple[pa.Table, Any]:
    """Return the ROLLUP of ``ops`` and the canonical devices after them.

    ``ops`` are in order of arrival, ``traces`` and ``names`` hold at least their traces and the names of the job's devices;
    ``canonical`` has the canonical device of each node id seen before them, NONE_ID for none; the result covers all ids.
    """
    devices = Devices(names)
    canonical = canonical_after(ops, devices, canonical)
    return rollup_of(by_node(ops, devices), traces, devices, canonical), canonical


def canonical_after(ops: pa.Table, devices: Devices, canonical: Any) -> Any:
    """Return ``canonical`` with the first CPU or GPU of each node of ``ops`` that had none; ``ops`` in order of arrival."""
    seen = pc.unique(_key(flat(ops["node"]), devices.plain(flat(ops["device"]))))
    seen = seen.filter(devices.canonical(_device(seen)))
    nodes = pc.unique(_node(seen))
    first = seen.take(pc.index_in(nodes, value_set=_node(seen)))
    size = max(len(canonical), pc.max(ops["node"]).as_py() + 1 if ops.num_rows else 0)
    later = _by_node(nodes, _device(first), size)
    known = pa.concat_arrays([canonical, repeat(NONE_ID, len(later) - len(canonical), pa.uint32())])
    return pc.if_else(pc.equal(known, NONE), later, known)


def by_node(ops: pa.Table, devices: Devices) -> pa.Table:
    """Return ``ops`` ordered by (node, device, trace)."""
    return ops.take(_order(flat(ops["node"]), devices.plain(flat(ops["device"])), flat(ops["trace"])))


def rollup_of(ops: pa.Table, traces: pa.Table, devices: Devices, canonical: Any) -> pa.Table:
    """Return the ROLLUP of ``ops`` ordered as by ``by_node``; ``canonical`` as ``canonical_after`` gives it."""
    if not ops.num_rows:
        return EMPTY
    device = devices.plain(flat(ops["device"]))
    node, trace = flat(ops["node"]), flat(ops["trace"])
    starts = pc.or_(changes(node), changes(device))
    begins = pc.indices_nonzero(starts)
    summed = by_run(ops, _bases(trace, traces), begins)
    of_device = {"node": node.take(begins), "device": device.take(begins), **summed}
    of_device["canonical"] = repeat(NONE_ID, len(begins), pa.uint32())
    looked_at = pc.or_(pc.invert(devices.canonical(device)), pc.equal(device, canonical.take(node)))
    counted = pc.and_(pc.or_(starts, changes(trace)), looked_at)
    of_node = _of_nodes(node.filter(counted), trace.filter(counted), canonical)
    table = pa.concat_tables([pa.table({name: of_device[name] for name in ROLLUP.names}, schema=ROLLUP), of_node])
    return table.take(pc.sort_indices(_key(table["node"], table["device"])))


def merge(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Return the ROLLUP of all that ``older`` and ``newer`` are rollups of; no trace may be in both."""
    if not older.num_rows or not newer.num_rows:
        return newer if newer.num_rows else older
    sides = (older, newer)
    side_keys = [_key(flat(side["node"]), flat(side["device"])) for side in sides]
    keys = ordered(pc.unique(pa.concat_arrays(side_keys)))
    indexes = [pc.index_in(keys, value_set=side_key) for side_key in side_keys]

    def aligned(name: str) -> list[Any]:
        return [flat(side[name]).take(index) for side, index in zip(sides, indexes, strict=True)]

    ran = [pc.fill_null(pc.greater(runs, integer(0)), False) for runs in aligned("runs")]
    known = [pc.if_else(pc.equal(column, NONE), NULL, column) for column in aligned("canonical")]
    columns: dict[str, Any] = {"node": _node(keys), "device": _device(keys)}
    columns["canonical"] = pc.fill_null(pc.coalesce(*known), NONE_ID)
    for name in _ADDED:
        columns[name] = pc.add(*(pc.fill_null(column, 0) for column in aligned(name)))
    for name, choose in (("min_ns", pc.min_element_wise), ("max_ns", pc.max_element_wise)):
        measured = (pc.if_else(some, column, NULL) for some, column in zip(ran, aligned(name), strict=True))
        columns[name] = pc.fill_null(choose(*measured), 0)
    columns["histogram"] = added_lists(
        [(flat(side["histogram"]), index) for side, index in zip(sides, indexes, strict=True)]
    )
    return pa.table(columns, schema=ROLLUP)


def canonical_of(total: pa.Table) -> Any:
    """Return the canonical device of each node id in ``total``, as ``rollup`` takes it."""
    rows = total.filter(pc.equal(total["device"], NONE))
    return _by_node(flat(rows["node"]), flat(rows["canonical"]), 0)


def _of_nodes(node: Any, trace: Any, canonical: Any) -> pa.Table:
    """Return the rows with device NONE_ID; ``node`` and ``trace`` once for each device that tfprof looks at, ordered by node."""
    if not len(node):
        return EMPTY
    starts = changes(node)
    nodes = node.filter(starts)
    row = pc.subtract(pc.cumulative_sum(starts.cast(pa.int64())), integer(1))
    width = integer(pc.max(trace).as_py() + 1)
    pairs = pc.add(pc.multiply(row, width), trace.cast(pa.int64()))
    if not _all(pc.greater, pairs):  # a node with several devices may have a trace on each
        pairs = pc.unique(pairs)
    columns: dict[str, Any] = {name: repeat(0, len(nodes), ROLLUP.field(name).type) for name in _NUMBERS}
    columns |= {"node": nodes, "device": repeat(NONE_ID, len(nodes), pa.uint32()), "canonical": canonical.take(nodes)}
    columns["traces"] = tallied(pc.divide(pairs, width), len(nodes))
    columns["histogram"] = pa.ListArray.from_arrays(repeat(0, len(nodes) + 1, pa.int32()), pa.array([], pa.uint32()))
    return pa.table(columns, schema=ROLLUP)


def _bases(trace: Any, traces: pa.Table) -> Any:
    """Return the real time (ns) that each row of ``trace`` counts from, 0 where it is not known."""
    return pc.fill_null(flat(traces["base_ns"]).take(pc.index_in(trace, value_set=flat(traces["trace"]))), 0)


def _by_node(node: Any, device: Any, size: int) -> Any:
    """Return ``device`` by node id, NONE_ID where there is none; ``size`` elements at least."""
    longest = pc.max(node).as_py() + 1 if len(node) else 0
    return scattered(node, device, max(size, longest), NONE_ID)


def _order(node: Any, device: Any, trace: Any) -> Any:
    """Return the indexes that sort by (node, device, trace); ids are dense, so that one key of the first two is counted, not compared."""
    devices = pc.add(pc.max(device).cast(pa.uint64()), pa.scalar(1, pa.uint64()))
    key = pc.add(pc.multiply(node.cast(pa.uint64()), devices), device.cast(pa.uint64()))
    if _all(pc.greater_equal, trace):  # as they arrive, but for the steps of a profiler window
        return pc.array_sort_indices(key)
    by_trace = pc.array_sort_indices(trace)
    return by_trace.take(pc.array_sort_indices(key.take(by_trace)))


def _all(compare: Any, column: Any) -> bool:
    """Whether ``compare`` holds between each element and the one before."""
    return pc.all(compare(column.slice(1), column.slice(0, max(0, len(column) - 1)))).as_py() is not False


def _key(node: Any, device: Any) -> Any:
    return pc.bit_wise_or(pc.shift_left(node.cast(pa.uint64()), _SHIFT), device.cast(pa.uint64()))


def _node(key: Any) -> Any:
    return pc.shift_right(key, _SHIFT).cast(pa.uint32())


def _device(key: Any) -> Any:
    return pc.bit_wise_and(key, _LOW).cast(pa.uint32())


_SHIFT, _LOW = pa.scalar(32, pa.uint64()), pa.scalar(NONE_ID, pa.uint64())
