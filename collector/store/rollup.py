"""Aggregates ops by node and device (schema.ROLLUP).

This is done by the C extension or by pyarrow, with equal results.
"""

from types import ModuleType
from typing import Any, Final

import pyarrow as pa

from . import aggregation
from .columns import changes, constant, flat, integer, pc, repeat, scatter, tally
from .devices import Devices
from .node_keys import device_of, node_of, pack
from .schema import NONE_ID, ROLLUP

EMPTY_ROLLUP: Final = ROLLUP.empty_table()

NO_DEVICE: Final = constant(NONE_ID, pa.uint32())
_SUMS: Final = tuple(name for name in aggregation.RESULTS if name != "traces")


def canonical_after(ops: pa.Table, devices: Devices, canonical: Any) -> Any:
    """Return ``canonical``, extended with the first CPU or GPU of the nodes that had none.

    ``canonical``: the canonical device by node id. ``ops``: executions in order of arrival.
    """
    node, device = flat(ops["node"]), devices.unified(flat(ops["device"]))
    if aggregation.native is not None:
        buffers = map(aggregation.values_of, (node, device, canonical))
        return aggregation.array_of(pa.uint32(), aggregation.native.canonical(*buffers, devices.canonical_flags))
    keys = pc.unique(pack(node, device))
    keys = keys.filter(devices.can_be_canonical(device_of(keys)))
    nodes = pc.unique(node_of(keys))
    first_keys = keys.take(pc.index_in(nodes, value_set=node_of(keys)))
    size = max(len(canonical), pc.max(node).as_py() + 1 if len(node) else 0)
    new_canonical = indexed_by_node(nodes, device_of(first_keys), size)
    old_canonical = pa.concat_arrays([canonical, repeat(NONE_ID, len(new_canonical) - len(canonical), pa.uint32())])
    return pc.if_else(pc.equal(old_canonical, NO_DEVICE), new_canonical, old_canonical)


def sorted_by_node(ops: pa.Table, devices: Devices) -> pa.Table:
    """Return ``ops`` sorted by (node, device, trace)."""
    order = _order(flat(ops["node"]), devices.unified(flat(ops["device"])), flat(ops["trace"]))
    ordered: pa.Table = pc.take(ops, order, boundscheck=False)
    return ordered


def rollup_of(ops: pa.Table, traces: pa.Table, devices: Devices, canonical: Any) -> pa.Table:
    """Return the ROLLUP of ``ops``, which must be sorted as by ``sorted_by_node``.

    ``traces``: the rows of TRACES of their traces. ``canonical``: a result of ``canonical_after``.
    """
    if not ops.num_rows:
        return EMPTY_ROLLUP
    columns = {name: flat(ops[name]) for name in ("node", "trace", *aggregation.INPUTS)}
    columns |= {"device": devices.unified(flat(ops["device"])), "base": bases(columns["trace"], traces)}
    if aggregation.native is not None:
        return _native_rollup(aggregation.native, columns, canonical, devices.canonical_flags)
    return _python_rollup(columns, devices, canonical)


def _native_rollup(module: ModuleType, columns: aggregation.Columns, canonical: Any, flags: bytes) -> pa.Table:
    keys = (aggregation.values_of(columns[name]) for name in ("node", "device", "trace"))
    inputs = tuple(aggregation.values_of(columns[name]) for name in ("base", *aggregation.INPUTS))
    *ids, words = module.rollup(*keys, inputs, aggregation.values_of(canonical), flags)
    id_columns = [aggregation.array_of(pa.uint32(), data) for data in ids]
    result = aggregation.columns_of(words, len(id_columns[0]))
    result |= dict(zip(("node", "device", "canonical"), id_columns, strict=True))
    return pa.table({name: result[name] for name in ROLLUP.names}, schema=ROLLUP)


def _python_rollup(columns: aggregation.Columns, devices: Devices, canonical: Any) -> pa.Table:
    node, device, trace = (columns[name] for name in ("node", "device", "trace"))
    is_start = pc.or_(changes(node), changes(device))
    run_starts = pc.indices_nonzero(is_start)
    device_columns = {
        "node": node.take(run_starts),
        "device": device.take(run_starts),
        **aggregation.aggregate_runs(columns, run_starts),
    }
    device_columns["canonical"] = repeat(NONE_ID, len(run_starts), pa.uint32())
    has_entry = pc.or_(pc.invert(devices.can_be_canonical(device)), pc.equal(device, canonical.take(node)))
    is_counted = pc.and_(pc.or_(is_start, changes(trace)), has_entry)
    node_rows = _node_rows(node.filter(is_counted), trace.filter(is_counted), canonical)
    table = pa.concat_tables(
        [pa.table({name: device_columns[name] for name in ROLLUP.names}, schema=ROLLUP), node_rows]
    )
    return table.take(pc.sort_indices(pack(table["node"], table["device"])))


def canonical_of(total: pa.Table) -> Any:
    """Return the canonical device of each node id in ``total``.

    The result can be passed to ``canonical_after``.
    """
    rows = total.filter(pc.equal(total["device"], NO_DEVICE))
    return indexed_by_node(flat(rows["node"]), flat(rows["canonical"]), 0)


def indexed_by_node(node: Any, device: Any, size: int) -> Any:
    """Return ``device`` by node id, NONE_ID if there is none; at least ``size`` elements."""
    length = pc.max(node).as_py() + 1 if len(node) else 0
    return scatter(node, device, max(size, length), NONE_ID)


def _node_rows(node: Any, trace: Any, canonical: Any) -> pa.Table:
    """Return the node rows of a ROLLUP.

    ``node`` and ``trace``: one row for each node, device and trace that counts, sorted by node. A
    device counts unless it is a CPU or GPU other than the canonical device of the node.
    """
    if not len(node):
        return EMPTY_ROLLUP
    is_start = changes(node)
    nodes = node.filter(is_start)
    node_index = pc.subtract(pc.cumulative_sum(is_start.cast(pa.int64())), integer(1))
    width = integer(pc.max(trace).as_py() + 1)
    pairs = pc.add(pc.multiply(node_index, width), trace.cast(pa.int64()))
    if not _all_neighbors(pc.greater, pairs):  # a node may have the same trace on several devices
        pairs = pc.unique(pairs)
    columns: dict[str, Any] = {name: repeat(0, len(nodes), ROLLUP.field(name).type) for name in _SUMS}
    columns |= {"node": nodes, "device": repeat(NONE_ID, len(nodes), pa.uint32()), "canonical": canonical.take(nodes)}
    columns["traces"] = tally(pc.divide(pairs, width), len(nodes))
    return pa.table(columns, schema=ROLLUP)


def bases(trace: Any, traces: pa.Table) -> Any:
    """Return the base (real time, ns) of each row's trace, 0 if unknown."""
    return pc.fill_null(flat(traces["base_ns"]).take(pc.index_in(trace, value_set=flat(traces["trace"]))), 0)


def _order(node: Any, device: Any, trace: Any) -> Any:
    """Return the indexes that sort by (node, device, trace).

    Ids are dense, so the keys usually span a small range, which pyarrow sorts by counting.
    """
    device_count = pc.add(pc.max(device).cast(pa.uint64()), pa.scalar(1, pa.uint64()))
    key = pc.add(pc.multiply(node.cast(pa.uint64()), device_count), device.cast(pa.uint64()))
    if _all_neighbors(pc.greater_equal, trace):  # usual; traces of profiler sessions may arrive in another order
        return pc.array_sort_indices(key)
    by_trace = pc.array_sort_indices(trace)
    return by_trace.take(pc.array_sort_indices(key.take(by_trace)))


def _all_neighbors(compare: Any, column: Any) -> bool:
    """Whether ``compare`` holds for each element and the one before it."""
    return pc.all(compare(column.slice(1), column.slice(0, max(0, len(column) - 1)))).as_py() is not False
