"""The aggregate of ops by node and device: pure, and nothing but columns (schema.ROLLUP)."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tfprof.collector.store.devices import Devices
from tfprof.collector.store.schema import NONE_ID, ROLLUP

EMPTY: Final = ROLLUP.empty_table()
NO_CANONICAL: Final = pa.array([], pa.uint32())

_KEY_SHIFT = 32
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
_SORTED: Final = [("key", "ascending")]


def rollup(ops: pa.Table, traces: pa.Table, names: pa.Table, canonical: pa.UInt32Array) -> tuple[pa.Table, pa.UInt32Array]:
    """Return the ROLLUP of ``ops`` and the canonical devices after them.

    ``ops`` are in order of arrival, ``traces`` and ``names`` hold at least their traces and the names of the job's devices;
    ``canonical`` has the canonical device of each node id seen before them, NONE_ID for none.
    """
    if not ops.num_rows:
        return EMPTY, canonical
    devices = Devices(names)
    node = _flat(ops["node"])
    device = devices.plain(_flat(ops["device"]))
    is_canonical = devices.canonical(device)
    canonical = _extended(canonical, node.filter(is_canonical), device.filter(is_canonical))
    looked_at = pc.or_(pc.invert(is_canonical), pc.equal(device, canonical.take(node)))
    key = _key(node, device)
    of_device = _of_devices(key, ops, traces)
    of_node = _of_nodes(node.filter(looked_at), _flat(ops["trace"]).filter(looked_at), canonical)
    table = pa.concat_tables([of_device, of_node])
    return table.take(pc.sort_indices(_key(table["node"], table["device"]))), canonical


def merge(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Return the ROLLUP of all that ``older`` and ``newer`` are rollups of; no trace may be in both."""
    if not older.num_rows or not newer.num_rows:
        return newer if newer.num_rows else older
    keys = [_key(_flat(side["node"]), _flat(side["device"])) for side in (older, newer)]
    union = pc.unique(pa.concat_arrays(keys))
    union = union.take(pc.sort_indices(union))
    sides = [(side, pc.index_in(union, value_set=key)) for side, key in zip((older, newer), keys, strict=True)]
    columns: dict[str, Any] = _unkey(union)
    columns["canonical"] = _first_canonical(sides)
    for name in _ADDED:
        columns[name] = pc.add(*(pc.fill_null(_aligned(side, rows, name), 0) for side, rows in sides))
    for name, choose in (("min_ns", pc.min_element_wise), ("max_ns", pc.max_element_wise)):
        columns[name] = pc.fill_null(choose(*(_where_ran(side, rows, name) for side, rows in sides)), 0)
    columns["histogram"] = _merged_lists([(_flat(side["histogram"]), rows) for side, rows in sides], len(union))
    return pa.table(columns, schema=ROLLUP)


def canonical_of(total: pa.Table) -> pa.UInt32Array:
    """Return the canonical device of each node id in ``total``, as ``rollup`` takes it."""
    rows = total.filter(pc.equal(total["device"], NONE_ID))
    return _scattered(_flat(rows["node"]), _flat(rows["canonical"]))


def _key(node: Any, device: Any) -> Any:
    return pc.bit_wise_or(pc.shift_left(node.cast(pa.uint64()), _wide(_KEY_SHIFT)), device.cast(pa.uint64()))


def _unkey(key: Any) -> dict[str, Any]:
    node = pc.shift_right(key, _wide(_KEY_SHIFT)).cast(pa.uint32())
    return {"node": node, "device": pc.bit_wise_and(key, _wide(NONE_ID)).cast(pa.uint32())}


def _of_nodes(node: Any, trace: Any, canonical: Any) -> pa.Table:
    """Return the rows with device NONE_ID."""
    distinct = pa.table({"node": node, "trace": trace}).group_by(["node", "trace"], use_threads=False).aggregate([])
    counted = distinct.group_by("node", use_threads=False).aggregate([([], "count_all")])
    columns: dict[str, Any] = {name: pa.nulls(counted.num_rows, ROLLUP.field(name).type).fill_null(0) for name in _NUMBERS}
    columns["node"] = counted["node"]
    columns["device"] = pa.repeat(pa.scalar(NONE_ID, pa.uint32()), counted.num_rows)
    columns["canonical"] = canonical.take(_flat(counted["node"]))
    columns["traces"] = counted["count_all"]
    columns["histogram"] = pa.ListArray.from_arrays(_zeros(counted.num_rows + 1, pa.int32()), pa.array([], pa.uint32()))
    return pa.table(columns, schema=ROLLUP)


_NUMBERS: Final = ("runs", *_SUMS, "min_ns", "max_ns")


def _of_devices(key: Any, ops: pa.Table, traces: pa.Table) -> pa.Table:
    """Return one row a (node, device)."""
    measured = _measured(ops, traces)
    grouped = pa.table({"key": key, **measured}).group_by("key", use_threads=False)
    aggregates: list[Any] = [(name, "sum") for name in _SUMS]
    aggregates += [("sum_ns", "min"), ("sum_ns", "max"), ("sum_ns", "count")]
    result = grouped.aggregate(aggregates).sort_by(_SORTED)
    distinct = pa.table({"key": key, "trace": ops["trace"]}).group_by(["key", "trace"], use_threads=False).aggregate([])
    counted = distinct.group_by("key", use_threads=False).aggregate([([], "count_all")]).sort_by(_SORTED)
    columns: dict[str, Any] = _unkey(result["key"])
    columns["canonical"] = pa.repeat(pa.scalar(NONE_ID, pa.uint32()), result.num_rows)
    columns |= {"traces": counted["count_all"], "runs": result["sum_ns_count"]}
    columns |= {name: pc.fill_null(result[f"{name}_sum"], 0) for name in _SUMS}
    columns |= {f"{name}_ns": pc.fill_null(result[f"sum_ns_{name}"], 0) for name in ("min", "max")}
    columns["histogram"] = _histograms(key, measured["sum_ns"], _flat(result["key"]))
    return pa.table(columns, schema=ROLLUP)


def _measured(ops: pa.Table, traces: pa.Table) -> dict[str, Any]:
    """Return what is summed up, by column; null where an execution has no start time."""
    trace = _flat(ops["trace"])
    base = pc.fill_null(_flat(traces["base_ns"]).take(pc.index_in(trace, value_set=_flat(traces["trace"]))), 0)
    start = pc.add(base, _flat(ops["start_ns"]))
    lasted = pc.add(_flat(ops["op_start_ns"]), _flat(ops["op_end_ns"]))
    start_us = _micros(start)
    duration = pc.add(pc.subtract(_micros(pc.add(start, lasted)), start_us), _flat(ops["end_us_fix"]))
    started = pc.greater(pc.add(start_us, _flat(ops["start_us_fix"])), 0)
    kept = pc.add(_flat(ops["persistent_bytes"]), _flat(ops["temp_bytes"]))
    columns = {
        "sum_us": pc.if_else(pc.equal(duration, 0), 1, duration),
        "sum_ns": lasted,
        "sum_squares_ns2": pc.power(lasted.cast(pa.float64(), safe=False), 2.0),
        "wait_ns": _flat(ops["wait_ns"]),
        "requested_bytes": pc.add(_flat(ops["total_bytes"]), kept),
        "peak_bytes": pc.add(_flat(ops["peak_bytes"]), kept),
        "residual_bytes": pc.add(_flat(ops["live_bytes"]), _flat(ops["persistent_bytes"])),
        "output_bytes": _flat(ops["output_bytes"]),
    }
    if pc.all(started).as_py():
        return columns
    return {name: pc.if_else(started, column, None) for name, column in columns.items()}


def _micros(ns: Any) -> Any:
    """Return the floor of ``ns`` / 1000."""
    quotient = pc.divide(ns, 1000)
    if not len(ns) or pc.min(ns).as_py() >= 0:
        return quotient
    return pc.subtract(quotient, pc.greater(pc.multiply(quotient, 1000), ns).cast(pa.int64()))


def _histograms(key: Any, ns: Any, keys: Any) -> pa.ListArray:
    """Return for each of the sorted ``keys`` the counts of its ``ns`` by bucket; nulls are in no bucket."""
    ran = pc.is_valid(ns)
    key, ns = key.filter(ran), ns.filter(ran)
    bucket = pc.floor(pc.multiply(pc.log2(pc.max_element_wise(ns, 1).cast(pa.float64(), safe=False)), 4.0)).cast(pa.int64())
    cells = pa.table({"key": key, "bucket": bucket}).group_by(["key", "bucket"], use_threads=False).aggregate([([], "count_all")])
    longest = cells.group_by("key", use_threads=False).aggregate([("bucket", "max")])
    rows = pc.index_in(keys, value_set=_flat(longest["key"]))
    lengths = pc.fill_null(pc.add(_flat(longest["bucket_max"]), 1).take(rows), 0)
    offsets = _offsets(lengths)
    at = pc.add(offsets.take(pc.index_in(_flat(cells["key"]), value_set=keys)), _flat(cells["bucket"]))
    found = pc.index_in(_count(offsets[-1].as_py()), value_set=at)
    counts = pc.fill_null(_flat(cells["count_all"]).take(found), 0).cast(pa.uint32())
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), counts)


def _merged_lists(sides: Sequence[tuple[Any, Any]], rows: int) -> pa.ListArray:
    """Return the element-wise sums of two columns of lists; ``rows`` rows, of which each side gives the one at its index, or none."""
    lengths = [pc.fill_null(pc.list_value_length(lists).take(index), 0).cast(pa.int64()) for lists, index in sides]
    offsets = _offsets(pc.max_element_wise(*lengths))
    total = offsets[-1].as_py()
    shape = pa.ListArray.from_arrays(offsets.cast(pa.int32()), pa.nulls(total, pa.int8()))
    row = pc.list_parent_indices(shape)
    position = pc.subtract(_count(total), offsets.take(row))
    counts = []
    for (lists, index), length in zip(sides, lengths, strict=True):
        flat, begin = pc.list_flatten(lists), _offsets(pc.list_value_length(lists).cast(pa.int64()))
        source = pc.add(begin.take(index).take(row), position)
        inside = pc.less(position, length.take(row))
        counts.append(pc.fill_null(flat.take(pc.if_else(inside, source, None)), 0))
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), pc.add(*counts))


def _first_canonical(sides: Sequence[tuple[pa.Table, Any]]) -> Any:
    """Return the older side's canonical device where it has one, else the newer one's."""
    known = [_aligned(side, rows, "canonical") for side, rows in sides]
    known = [pc.if_else(pc.equal(column, NONE_ID), None, column) for column in known]
    return pc.fill_null(pc.coalesce(*known), NONE_ID)


def _where_ran(side: pa.Table, rows: Any, name: str) -> Any:
    ran = pc.greater(_aligned(side, rows, "runs"), 0)
    return pc.if_else(pc.fill_null(ran, False), _aligned(side, rows, name), None)


def _aligned(side: pa.Table, rows: Any, name: str) -> Any:
    return _flat(side[name]).take(rows)


def _extended(canonical: Any, node: Any, device: Any) -> pa.UInt32Array:
    """Return ``canonical`` with the first ``device`` of each ``node`` that had none."""
    first = pa.table({"node": node, "device": device}).group_by("node", use_threads=False).aggregate([("device", "first")])
    later = _scattered(_flat(first["node"]), _flat(first["device_first"]))
    size = max(len(canonical), len(later))
    known, new = (pa.concat_arrays([side, _none(size - len(side))]) for side in (canonical, later))
    return pc.if_else(pc.equal(known, NONE_ID), new, known)


def _scattered(at: Any, values: Any) -> pa.UInt32Array:
    """Return an array with ``values`` at the indexes ``at``, NONE_ID elsewhere."""
    if not len(at):
        return NO_CANONICAL
    found = pc.index_in(_count(pc.max(at).as_py() + 1).cast(pa.uint32()), value_set=at)
    return pc.fill_null(values.take(found), NONE_ID)


def _offsets(lengths: Any) -> Any:
    return pa.concat_arrays([_zeros(1, pa.int64()), pc.cumulative_sum(lengths)])


def _count(size: int) -> Any:
    """Return 0, 1, … ``size`` - 1."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), size)), 1)


def _zeros(size: int, kind: Any) -> Any:
    return pa.repeat(pa.scalar(0, kind), size)


def _none(size: int) -> Any:
    return pa.repeat(pa.scalar(NONE_ID, pa.uint32()), size)


def _wide(value: int) -> Any:
    return pa.scalar(value, pa.uint64())


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
