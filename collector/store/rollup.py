"""Aggregates ops by node and device (schema.ROLLUP).

This is done by the C extension or by pyarrow, with equal results.
"""

from types import ModuleType
from typing import Any, Final

import pyarrow as pa

from . import aggregation
from .columns import changes, constant, flat, integer, pc, repeat, scattered, tallied
from .devices import Devices
from .node_keys import device_of, node_of, packed
from .schema import NONE_ID, ROLLUP

EMPTY: Final = ROLLUP.empty_table()

NONE: Final = constant(NONE_ID, pa.uint32())
_NUMBERS: Final = tuple(name for name in aggregation.RESULTS if name != "traces")


def canonical_after(ops: pa.Table, devices: Devices, canonical: Any) -> Any:
    """Return ``canonical``, by node id, extended with the first CPU or GPU of nodes that had none.

    ``ops``: executions in order of arrival.
    """
    node, device = flat(ops["node"]), devices.unified(flat(ops["device"]))
    if aggregation.native is not None:
        buffers = map(aggregation.values_of, (node, device, canonical))
        return aggregation.array_of(pa.uint32(), aggregation.native.canonical(*buffers, devices.flags))
    seen = pc.unique(packed(node, device))
    seen = seen.filter(devices.canonical(device_of(seen)))
    nodes = pc.unique(node_of(seen))
    first = seen.take(pc.index_in(nodes, value_set=node_of(seen)))
    size = max(len(canonical), pc.max(node).as_py() + 1 if len(node) else 0)
    later = _indexed_by_node(nodes, device_of(first), size)
    known = pa.concat_arrays([canonical, repeat(NONE_ID, len(later) - len(canonical), pa.uint32())])
    return pc.if_else(pc.equal(known, NONE), later, known)


def sorted_by_node(ops: pa.Table, devices: Devices) -> pa.Table:
    """Return ``ops`` sorted by (node, device, trace)."""
    order = _order(flat(ops["node"]), devices.unified(flat(ops["device"])), flat(ops["trace"]))
    ordered: pa.Table = pc.take(ops, order, boundscheck=False)
    return ordered


def rollup_of(ops: pa.Table, traces: pa.Table, devices: Devices, canonical: Any) -> pa.Table:
    """Return the ROLLUP of ``ops``, which must be sorted as by ``sorted_by_node``.

    ``traces``: their rows of TRACES. ``canonical``: a result of ``canonical_after``.
    """
    if not ops.num_rows:
        return EMPTY
    columns = {name: flat(ops[name]) for name in ("node", "trace", *aggregation.INPUTS)}
    columns |= {"device": devices.unified(flat(ops["device"])), "base": bases(columns["trace"], traces)}
    if aggregation.native is not None:
        return _by_native(aggregation.native, columns, canonical, devices.flags)
    return _by_python(columns, devices, canonical)


def _by_native(module: ModuleType, columns: aggregation.Columns, canonical: Any, flags: bytes) -> pa.Table:
    keys = (aggregation.values_of(columns[name]) for name in ("node", "device", "trace"))
    inputs = tuple(aggregation.values_of(columns[name]) for name in ("base", *aggregation.INPUTS))
    *ids, words = module.rollup(*keys, inputs, aggregation.values_of(canonical), flags)
    found = [aggregation.array_of(pa.uint32(), each) for each in ids]
    result = aggregation.columns_of(words, len(found[0]))
    result |= dict(zip(("node", "device", "canonical"), found, strict=True))
    return pa.table({name: result[name] for name in ROLLUP.names}, schema=ROLLUP)


def _by_python(columns: aggregation.Columns, devices: Devices, canonical: Any) -> pa.Table:
    node, device, trace = (columns[name] for name in ("node", "device", "trace"))
    starts = pc.or_(changes(node), changes(device))
    begins = pc.indices_nonzero(starts)
    of_device = {"node": node.take(begins), "device": device.take(begins), **aggregation.by_run(columns, begins)}
    of_device["canonical"] = repeat(NONE_ID, len(begins), pa.uint32())
    has_entry = pc.or_(pc.invert(devices.canonical(device)), pc.equal(device, canonical.take(node)))
    counted = pc.and_(pc.or_(starts, changes(trace)), has_entry)
    of_node = _of_nodes(node.filter(counted), trace.filter(counted), canonical)
    table = pa.concat_tables([pa.table({name: of_device[name] for name in ROLLUP.names}, schema=ROLLUP), of_node])
    return table.take(pc.sort_indices(packed(table["node"], table["device"])))


def canonical_of(total: pa.Table) -> Any:
    """Return the canonical device of each node id in ``total``.

    The result has the form that ``canonical_after`` takes.
    """
    rows = total.filter(pc.equal(total["device"], NONE))
    return _indexed_by_node(flat(rows["node"]), flat(rows["canonical"]), 0)


def _of_nodes(node: Any, trace: Any, canonical: Any) -> pa.Table:
    """Return the rows with device NONE_ID.

    ``node`` and ``trace``: one row for each node, device and trace that counts, sorted by node.
    Every device counts, except a CPU or GPU that is not the canonical device of the node.
    """
    if not len(node):
        return EMPTY
    starts = changes(node)
    nodes = node.filter(starts)
    row = pc.subtract(pc.cumulative_sum(starts.cast(pa.int64())), integer(1))
    width = integer(pc.max(trace).as_py() + 1)
    pairs = pc.add(pc.multiply(row, width), trace.cast(pa.int64()))
    if not _all_neighbors(pc.greater, pairs):  # a node may have the same trace on several devices
        pairs = pc.unique(pairs)
    columns: dict[str, Any] = {name: repeat(0, len(nodes), ROLLUP.field(name).type) for name in _NUMBERS}
    columns |= {"node": nodes, "device": repeat(NONE_ID, len(nodes), pa.uint32()), "canonical": canonical.take(nodes)}
    columns["traces"] = tallied(pc.divide(pairs, width), len(nodes))
    return pa.table(columns, schema=ROLLUP)


def bases(trace: Any, traces: pa.Table) -> Any:
    """Return the base (real time, ns) of each row's trace, 0 if unknown."""
    return pc.fill_null(flat(traces["base_ns"]).take(pc.index_in(trace, value_set=flat(traces["trace"]))), 0)


def _indexed_by_node(node: Any, device: Any, size: int) -> Any:
    """Return ``device`` by node id, NONE_ID if there is none; at least ``size`` elements."""
    longest = pc.max(node).as_py() + 1 if len(node) else 0
    return scattered(node, device, max(size, longest), NONE_ID)


def _order(node: Any, device: Any, trace: Any) -> Any:
    """Return the indexes that sort by (node, device, trace).

    Ids are dense, so a counting sort suffices.
    """
    devices = pc.add(pc.max(device).cast(pa.uint64()), pa.scalar(1, pa.uint64()))
    key = pc.add(pc.multiply(node.cast(pa.uint64()), devices), device.cast(pa.uint64()))
    if _all_neighbors(pc.greater_equal, trace):  # usual; traces of profiler windows may arrive in another order
        return pc.array_sort_indices(key)
    by_trace = pc.array_sort_indices(trace)
    return by_trace.take(pc.array_sort_indices(key.take(by_trace)))


def _all_neighbors(compare: Any, column: Any) -> bool:
    """Whether ``compare`` holds for each element and the one before it."""
    return pc.all(compare(column.slice(1), column.slice(0, max(0, len(column) - 1)))).as_py() is not False
