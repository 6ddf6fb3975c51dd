"""Aggregates op executions by node and device.

Also converts the inputs and outputs of the C part.
"""

import importlib
from types import ModuleType
from typing import Any, Final

import pyarrow as pa

from .columns import NULL, changes, constant, flat, floor_divided, integer, lists, pc, repeat, row_numbers, scattered
from .schema import ROLLUP

#: The columns of ops that an aggregation reads, besides `trace` and the base of `start_ns`.
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
#: The columns of ROLLUP that an aggregation computes, except `histogram`.
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
    "first_bucket",
)
_BUCKETS_AN_OCTAVE: Final = 4

Columns = dict[str, Any]


def _load() -> ModuleType | None:
    try:
        return importlib.import_module("tfprof.collector.store._sums")
    except ImportError:
        return None


native = _load()


def values_of(column: Any) -> memoryview:
    """Return the memory of the values of ``column``, which has no nulls."""
    width = column.type.bit_width // 8
    data = column.buffers()[1]
    return memoryview(b"" if data is None else data)[column.offset * width : (column.offset + len(column)) * width]


def array_of(kind: Any, data: Any) -> Any:
    """Return a column of type ``kind`` with the values in ``data``."""
    values = pa.py_buffer(data)
    return pa.Array.from_buffers(kind, values.size * 8 // kind.bit_width, [None, values])


def columns_of(sums: bytes, ends: bytes, counts: bytes, rows: int) -> Columns:
    """Return the columns RESULTS and `histogram` from the output of the C part.

    ``sums``: the columns RESULTS, concatenated; ``ends`` and ``counts``: offsets and values of the
    histograms.
    """
    size = 8 * rows
    words = pa.py_buffer(sums)
    result: Columns = {
        name: array_of(ROLLUP.field(name).type, words.slice(number * size, size)) for number, name in enumerate(RESULTS)
    }
    result["histogram"] = pa.ListArray.from_arrays(array_of(pa.int32(), ends), array_of(pa.uint32(), counts))
    return result


def by_run(columns: Columns, begins: Any) -> Columns:
    """Return the columns RESULTS and `histogram` of ROLLUP, one row per run of rows in ``columns``.

    ``columns``: `trace`, `base` (the real time in ns from which `start_ns` counts) and INPUTS. Runs
    begin at the indexes ``begins``, the first one at 0. Traces ascend within a run. A row without a
    start time counts in `traces` only.
    """
    first = pc.is_in(row_numbers(len(columns["trace"])).cast(pa.uint64()), value_set=begins)
    row = pc.subtract(pc.cumulative_sum(first.cast(pa.int64())), integer(1))
    measured = {"traces": pc.or_(first, changes(columns["trace"])).cast(pa.int64()), **_measured(columns)}
    sums = [name for name in RESULTS if name in measured]
    aggregates: list[Any] = [(name, "sum") for name in sums] + [("sum_ns", name) for name in ("min", "max", "count")]
    grouped = pa.table({"row": row, **measured}).group_by("row", use_threads=False).aggregate(aggregates).sort_by("row")
    result: Columns = {name: pc.fill_null(flat(grouped[f"{name}_sum"]), 0) for name in sums}
    result |= {f"{name}_ns": pc.fill_null(flat(grouped[f"sum_ns_{name}"]), 0) for name in ("min", "max")}
    result["runs"] = flat(grouped["sum_ns_count"])
    ran = pc.is_valid(measured["sum_ns"])
    buckets = _buckets(measured["sum_ns"].filter(ran))
    result |= histograms(row.filter(ran), buckets, repeat(1, len(buckets), pa.uint32()), len(begins))
    return result


def histograms(row: Any, bucket: Any, counts: Any, rows: int) -> Columns:
    """Return the columns `first_bucket` and `histogram` of ``rows`` rows.

    Each element of ``counts`` is added to the ``bucket`` of the ``row`` at the same position.
    """
    width = integer(pc.max(bucket).as_py() + 1 if len(bucket) else 1)
    cells = pa.table({"cell": pc.add(pc.multiply(row, width), bucket), "count": counts})
    summed = cells.group_by("cell", use_threads=False).aggregate([("count", "sum")])
    cell = flat(summed["cell"])
    row = pc.divide(cell, width)
    bucket = pc.subtract(cell, pc.multiply(row, width))
    lowest = pa.table({"row": row, "bucket": bucket}).group_by("row", use_threads=False).aggregate([("bucket", "min")])
    first = scattered(flat(lowest["row"]), flat(lowest["bucket_min"]), rows, 0)
    wrapped = pc.bit_wise_and(flat(summed["count_sum"]), constant(0xFFFFFFFF, pa.uint64())).cast(pa.uint32())
    return {"first_bucket": first, "histogram": lists(row, pc.subtract(bucket, first.take(row)), wrapped, rows)}


def durations(column: Columns) -> tuple[Any, Any]:
    """Return the duration of each execution in µs, and whether it has a start time.

    A duration of 0 counts as 1. ``column``: `base` and the INPUTS of each execution, by name.
    """
    start = pc.add(column["base"], column["start_ns"])
    end = pc.add(start, pc.add(column["op_start_ns"], column["op_end_ns"]))
    start_us = floor_divided(start, 1000)
    lasted = pc.add(pc.subtract(floor_divided(end, 1000), start_us), column["end_us_fix"])
    started = pc.greater(pc.add(start_us, column["start_us_fix"]), integer(0))
    return pc.if_else(pc.equal(lasted, integer(0)), integer(1), lasted), started


def _measured(column: Columns) -> Columns:
    """Return the values to be summed, by column; null if the execution has no start time."""
    lasted = pc.add(column["op_start_ns"], column["op_end_ns"])
    kept = pc.add(column["persistent_bytes"], column["temp_bytes"])
    squared = lasted.cast(pa.float64(), safe=False)
    duration, started = durations(column)
    columns = {
        "sum_us": duration,
        "sum_ns": lasted,
        "sum_squares_ns2": pc.multiply(squared, squared),
        "wait_ns": column["wait_ns"],
        "requested_bytes": pc.add(column["total_bytes"], kept),
        "peak_bytes": pc.add(column["peak_bytes"], kept),
        "residual_bytes": pc.add(column["live_bytes"], column["persistent_bytes"]),
        "output_bytes": column["output_bytes"],
    }
    return {name: pc.if_else(started, values, NULL) for name, values in columns.items()}


def _buckets(ns: Any) -> Any:
    octaves = pc.log2(pc.max_element_wise(ns, integer(1)).cast(pa.float64(), safe=False))
    return pc.floor(pc.multiply(octaves, constant(float(_BUCKETS_AN_OCTAVE), pa.float64()))).cast(pa.int64())
