"""The aggregate of ops by node and device: pure, and nothing but columns (schema.ROLLUP)."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from tfprof.collector.store.columns import (
    NULL,
    added_lists,
    changes,
    constant,
    flat,
    floor_divided,
    integer,
    lists,
    ordered,
    pc,
    repeat,
    scattered,
    tallied,
)
from tfprof.collector.store.devices import Devices
from tfprof.collector.store.schema import NONE_ID, ROLLUP

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
#: About as many rows are worked on at once.
PART_ROWS: Final = 50_000
_NUMBERS: Final = ("runs", *_SUMS, "min_ns", "max_ns")
#: Histogram buckets by two's logarithm, and more than there can be of them.
_BUCKETS_AN_OCTAVE, _BUCKETS = 4, 256


def rollup(ops: pa.Table, traces: pa.Table, names: pa.Table, canonical: Any) -> tuple[pa.Table, Any]:
    """Return the ROLLUP of ``ops`` and the canonical devices after them.

    ``ops`` are in order of arrival, ``traces`` and ``names`` hold at least their traces and the names of the job's devices;
    ``canonical`` has the canonical device of each node id seen before them, NONE_ID for none; the result covers all ids.
    """
    devices = Devices(names)
    canonical = canonical_after(ops, devices, canonical)
    parts = [rollup_part(part, traces, devices, canonical) for part in parts_by_node(ops, devices)]
    return pa.concat_tables([EMPTY, *parts]).combine_chunks(), canonical


def canonical_after(ops: pa.Table, devices: Devices, canonical: Any) -> Any:
    """Return ``canonical`` with the first CPU or GPU of each node of ``ops`` that had none; ``ops`` in order of arrival."""
    seen = pc.unique(_key(flat(ops["node"]), devices.plain(flat(ops["device"]))))
    seen = seen.filter(devices.canonical(_device(seen)))
    grouped = pa.table({"node": _node(seen), "device": _device(seen)}).group_by("node", use_threads=False)
    first = grouped.aggregate([("device", "first")])
    size = max(len(canonical), pc.max(ops["node"]).as_py() + 1 if ops.num_rows else 0)
    later = _by_node(flat(first["node"]), flat(first["device_first"]), size)
    known = pa.concat_arrays([canonical, repeat(NONE_ID, len(later) - len(canonical), pa.uint32())])
    return pc.if_else(pc.equal(known, NONE), later, known)


def parts_by_node(ops: pa.Table, devices: Devices) -> Iterator[pa.Table]:
    """Yield ``ops`` ordered by (node, device, trace) in parts that have all rows of their nodes; small, to be kind to caches."""
    plain = ops.select(["node", "trace"]).append_column("device", devices.plain(flat(ops["device"])))
    index = pc.sort_indices(plain, sort_keys=[(name, "ascending") for name in ("node", "device", "trace")])
    node = flat(ops["node"]).take(index)
    start = 0
    while start < len(index):
        end = _end_of_run(node, start + PART_ROWS)
        yield ops.take(index.slice(start, end - start))
        start = end


def rollup_part(ops: pa.Table, traces: pa.Table, devices: Devices, canonical: Any) -> pa.Table:
    """Return the ROLLUP of a part of ``parts_by_node``; ``canonical`` as ``canonical_after`` gives it."""
    key = _key(flat(ops["node"]), devices.plain(flat(ops["device"])))
    starts = changes(key)
    keys = key.filter(starts)
    row = pc.subtract(pc.cumulative_sum(starts.cast(pa.int64())), integer(1))
    first_of_trace = pc.or_(starts, changes(flat(ops["trace"])))
    of_device = _of_devices(keys, {"row": row, "traces": first_of_trace.cast(pa.int64()), **_measured(ops, traces)})
    looked_at = pc.or_(
        pc.invert(devices.canonical(_device(keys))), pc.equal(_device(keys), canonical.take(_node(keys)))
    )
    counted = pc.and_(first_of_trace, looked_at.take(row))
    of_node = _of_nodes(flat(ops["node"]).filter(counted), flat(ops["trace"]).filter(counted), canonical)
    table = pa.concat_tables([of_device, of_node])
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


def _of_devices(keys: Any, columns: dict[str, Any]) -> pa.Table:
    """Return one row a (node, device); ``columns`` are those of `_measured`, and `row` (index of its key) and `traces`."""
    sums = ("traces", *_SUMS)
    aggregates: list[Any] = [(name, "sum") for name in sums] + [("sum_ns", name) for name in ("min", "max", "count")]
    grouped = pa.table(columns).group_by("row", use_threads=False).aggregate(aggregates).sort_by("row")
    result: dict[str, Any] = {"node": _node(keys), "device": _device(keys), "runs": grouped["sum_ns_count"]}
    result["canonical"] = repeat(NONE_ID, len(keys), pa.uint32())
    result |= {name: pc.fill_null(grouped[f"{name}_sum"], 0) for name in sums}
    result |= {f"{name}_ns": pc.fill_null(grouped[f"sum_ns_{name}"], 0) for name in ("min", "max")}
    result["histogram"] = _histograms(columns["row"], columns["sum_ns"], len(keys))
    return pa.table(result, schema=ROLLUP)


def _of_nodes(node: Any, trace: Any, canonical: Any) -> pa.Table:
    """Return the rows with device NONE_ID; ``node`` and ``trace`` once for each device that tfprof looks at, ordered by node."""
    if not len(node):
        return EMPTY
    starts = changes(node)
    nodes = node.filter(starts)
    row = pc.subtract(pc.cumulative_sum(starts.cast(pa.int64())), integer(1))
    width = integer(pc.max(trace).as_py() + 1)
    pairs = pc.add(pc.multiply(row, width), trace.cast(pa.int64()))
    if not _ascending(pairs):  # a node with several devices may have a trace on each
        pairs = pc.unique(pairs)
    columns: dict[str, Any] = {name: repeat(0, len(nodes), ROLLUP.field(name).type) for name in _NUMBERS}
    columns |= {"node": nodes, "device": repeat(NONE_ID, len(nodes), pa.uint32()), "canonical": canonical.take(nodes)}
    columns["traces"] = tallied(pc.divide(pairs, width), len(nodes))
    columns["histogram"] = pa.ListArray.from_arrays(repeat(0, len(nodes) + 1, pa.int32()), pa.array([], pa.uint32()))
    return pa.table(columns, schema=ROLLUP)


def _measured(ops: pa.Table, traces: pa.Table) -> dict[str, Any]:
    """Return what is summed up, by column; null where an execution has no start time."""
    column: dict[str, Any] = {name: flat(ops[name]) for name in ops.column_names}
    base = flat(traces["base_ns"]).take(pc.index_in(column["trace"], value_set=flat(traces["trace"])))
    start = pc.add(pc.fill_null(base, 0), column["start_ns"])
    lasted = pc.add(column["op_start_ns"], column["op_end_ns"])
    start_us = floor_divided(start, 1000)
    duration = pc.add(pc.subtract(floor_divided(pc.add(start, lasted), 1000), start_us), column["end_us_fix"])
    kept = pc.add(column["persistent_bytes"], column["temp_bytes"])
    squared = lasted.cast(pa.float64(), safe=False)
    columns = {
        "sum_us": pc.if_else(pc.equal(duration, integer(0)), integer(1), duration),
        "sum_ns": lasted,
        "sum_squares_ns2": pc.multiply(squared, squared),
        "wait_ns": column["wait_ns"],
        "requested_bytes": pc.add(column["total_bytes"], kept),
        "peak_bytes": pc.add(column["peak_bytes"], kept),
        "residual_bytes": pc.add(column["live_bytes"], column["persistent_bytes"]),
        "output_bytes": column["output_bytes"],
    }
    started = pc.greater(pc.add(start_us, column["start_us_fix"]), integer(0))
    if pc.all(started).as_py():
        return columns
    return {name: pc.if_else(started, values, NULL) for name, values in columns.items()}


def _histograms(row: Any, ns: Any, rows: int) -> Any:
    """Return the counts of ``ns`` by bucket for each of ``rows`` rows; nulls are in no bucket."""
    ran = pc.is_valid(ns)
    octaves = pc.log2(pc.max_element_wise(ns.filter(ran), integer(1)).cast(pa.float64(), safe=False))
    bucket = pc.floor(pc.multiply(octaves, constant(float(_BUCKETS_AN_OCTAVE), pa.float64()))).cast(pa.int64())
    cells = pc.value_counts(pc.add(pc.multiply(row.filter(ran), integer(_BUCKETS)), bucket))
    cell = cells.field("values")
    cell_row = pc.divide(cell, integer(_BUCKETS))
    position = pc.subtract(cell, pc.multiply(cell_row, integer(_BUCKETS)))
    return lists(cell_row, position, cells.field("counts").cast(pa.uint32()), rows)


def _by_node(node: Any, device: Any, size: int) -> Any:
    """Return ``device`` by node id, NONE_ID where there is none; ``size`` elements at least."""
    longest = pc.max(node).as_py() + 1 if len(node) else 0
    return scattered(node, device, max(size, longest), NONE_ID)


def _ascending(column: Any) -> bool:
    """Whether each element is greater than the one before."""
    return pc.all(pc.greater(column.slice(1), column.slice(0, len(column) - 1))).as_py() is not False


def _end_of_run(column: Any, start: int) -> int:
    """Return the first index from ``start`` on where sorted ``column`` differs from its element before ``start``."""
    if start >= len(column):
        return len(column)
    found = pc.index(pc.not_equal(column.slice(start), column[start - 1]), True).as_py()
    return len(column) if found < 0 else start + int(found)


def _key(node: Any, device: Any) -> Any:
    return pc.bit_wise_or(pc.shift_left(node.cast(pa.uint64()), _SHIFT), device.cast(pa.uint64()))


def _node(key: Any) -> Any:
    return pc.shift_right(key, _SHIFT).cast(pa.uint32())


def _device(key: Any) -> Any:
    return pc.bit_wise_and(key, _LOW).cast(pa.uint32())


_SHIFT, _LOW = pa.scalar(32, pa.uint64()), pa.scalar(NONE_ID, pa.uint64())
