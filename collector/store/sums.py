"""What is summed up of op executions, run by run: by the C part where it was built, else by pyarrow; equal on every input."""

import importlib
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
from tfprof.collector.store.columns import (
    NULL,
    changes,
    constant,
    count,
    flat,
    floor_divided,
    integer,
    lists,
    pc,
)
from tfprof.collector.store.schema import ROLLUP

#: The columns of ops that are looked at, after `trace` and the real time that `start_ns` counts from.
INPUTS: Final = (
    "start_ns",
    "op_start_ns",
    "op_end_ns",
    "start_us_fix",
    "end_us_fix",
    "wait_ns",
    "total_bytes",
    "peak_bytes",
    "live_bytes",
    "output_bytes",
    "temp_bytes",
    "persistent_bytes",
)
#: The columns of ROLLUP that come of them, `histogram` apart.
RESULTS: Final = (
    "traces",
    "runs",
    "sum_us",
    "sum_ns",
    "min_ns",
    "max_ns",
    "sum_squares_ns2",
    "wait_ns",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
)
#: Histogram buckets by two's logarithm, and more than there can be of them.
_BUCKETS_AN_OCTAVE, _BUCKETS = 4, 256

Columns = dict[str, Any]


def _load() -> ModuleType | None:
    try:
        return importlib.import_module("tfprof.collector.store._sums")
    except ImportError:
        return None


native = _load()


def by_run(ops: pa.Table, base: Any, begins: Any) -> Columns:
    """Return the columns RESULTS and `histogram` of ROLLUP, one row a run of rows of ``ops``.

    ``base`` is the real time (ns) that each row's `start_ns` counts from; runs begin at the indexes ``begins``, the first
    one at 0, and have their traces in order. A row without a start time counts for `traces` alone.
    """
    columns = {name: flat(ops[name]) for name in ("trace", *INPUTS)} | {"base": base}
    return by_python(columns, begins) if native is None else _by_native(native, columns, begins)


def _by_native(module: ModuleType, columns: Columns, begins: Any) -> Columns:
    inputs = tuple(values_of(columns[name]) for name in ("base", *INPUTS))
    words, ends, counts = module.by_run(values_of(columns["trace"]), values_of(begins), inputs)
    return columns_of(words, ends, counts, len(begins))


def columns_of(sums: bytes, ends: bytes, counts: bytes, rows: int) -> Columns:
    """Return the columns RESULTS and `histogram` that the C part made: ``sums`` one after the other, histograms by their ends."""
    size = 8 * rows
    words = pa.py_buffer(sums)
    result: Columns = {
        name: _array(ROLLUP.field(name).type, words.slice(number * size, size)) for number, name in enumerate(RESULTS)
    }
    buckets = _array(pa.uint32(), pa.py_buffer(counts))
    result["histogram"] = pa.ListArray.from_arrays(_array(pa.int32(), pa.py_buffer(ends)), buckets)
    return result


def values_of(column: Any) -> memoryview:
    """Return the values of ``column``, which has no nulls."""
    width = column.type.bit_width // 8
    data = column.buffers()[1]
    return memoryview(b"" if data is None else data)[column.offset * width : (column.offset + len(column)) * width]


def _array(kind: Any, data: pa.Buffer) -> Any:
    return pa.Array.from_buffers(kind, data.size * 8 // kind.bit_width, [None, data])


def by_python(columns: Columns, begins: Any) -> Columns:
    """Return what ``by_run`` does, of ``columns`` `trace`, `base` and INPUTS."""
    first = pc.is_in(count(len(columns["trace"])).cast(pa.uint64()), value_set=begins)
    row = pc.subtract(pc.cumulative_sum(first.cast(pa.int64())), integer(1))
    measured = {"traces": pc.or_(first, changes(columns["trace"])).cast(pa.int64()), **_measured(columns)}
    sums = [name for name in RESULTS if name in measured]
    aggregates: list[Any] = [(name, "sum") for name in sums] + [("sum_ns", name) for name in ("min", "max", "count")]
    grouped = pa.table({"row": row, **measured}).group_by("row", use_threads=False).aggregate(aggregates).sort_by("row")
    result: Columns = {name: pc.fill_null(flat(grouped[f"{name}_sum"]), 0) for name in sums}
    result |= {f"{name}_ns": pc.fill_null(flat(grouped[f"sum_ns_{name}"]), 0) for name in ("min", "max")}
    result["runs"] = flat(grouped["sum_ns_count"])
    result["histogram"] = _histograms(row, measured["sum_ns"], len(begins))
    return result


def _measured(column: Columns) -> Columns:
    """Return what is summed up, by column; null where an execution has no start time."""
    start = pc.add(column["base"], column["start_ns"])
    lasted = pc.add(column["op_start_ns"], column["op_end_ns"])
    start_us = floor_divided(start, 1000)
    duration = pc.add(pc.subtract(floor_divided(pc.add(start, lasted), 1000), start_us), column["end_us_fix"])
    kept = pc.add(column["persistent_bytes"], column["temp_bytes"])
    squared = lasted.cast(pa.float64(), safe=False)
    started = pc.greater(pc.add(start_us, column["start_us_fix"]), integer(0))
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
