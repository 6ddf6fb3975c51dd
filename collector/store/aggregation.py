"""Aggregates op executions by node and device.

The module also converts the inputs and outputs of the C extension.
"""

from typing import Any, Final

import pyarrow as pa

from ..loader import load_extension
from .columns import changes, floor_divide, integer, pc, row_numbers, run_sums
from .schema import ROLLUP

#: The columns of ops that an aggregation reads, besides `trace` and the base of `start_ns`.
INPUTS: Final = (
    "start_ns",
    "op_start_ns",
    "op_end_ns",
    "start_us_fix",
    "end_us_fix",
    "total_bytes",
    "peak_bytes",
    "live_bytes",
    "output_bytes",
    "temp_bytes",
    "persistent_bytes",
)
#: The columns of ops that show, together with the base, whether an execution has a start time.
START_TIMES: Final = ("start_ns", "start_us_fix")
#: The columns of ROLLUP that an aggregation computes: sums, of type int64.
RESULTS: Final = (
    "traces",
    "runs",
    "sum_us",
    "sum_ns",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
)

Columns = dict[str, Any]

native = load_extension("store._rollup")


def values_of(column: Any) -> memoryview:
    """Return the memory of the values of ``column``, which has no nulls."""
    width = column.type.bit_width // 8
    data = column.buffers()[1]
    return memoryview(b"" if data is None else data)[column.offset * width : (column.offset + len(column)) * width]


def array_of(kind: Any, data: Any) -> Any:
    """Return a column of type ``kind`` with the values in ``data``."""
    values = pa.py_buffer(data)
    return pa.Array.from_buffers(kind, values.size * 8 // kind.bit_width, [None, values])


def columns_of(sums: bytes, rows: int) -> Columns:
    """Return the columns RESULTS from ``sums``, in which the C extension concatenates them."""
    size = 8 * rows
    words = pa.py_buffer(sums)
    return {
        name: array_of(ROLLUP.field(name).type, words.slice(number * size, size)) for number, name in enumerate(RESULTS)
    }


def aggregate_runs(columns: Columns, run_starts: Any) -> Columns:
    """Return the columns RESULTS of ROLLUP, one row per run of rows in ``columns``.

    ``columns``: `trace`, `base` (the real time in ns from which `start_ns` counts) and INPUTS. Runs
    begin at the indexes ``run_starts``, the first one at 0. Traces ascend within a run. A row
    without a start time counts in `traces` only.
    """
    is_first = pc.is_in(row_numbers(len(columns["trace"])).cast(run_starts.type), value_set=run_starts)
    traces = pc.or_(is_first, changes(columns["trace"])).cast(pa.int64())
    return {name: run_sums(values, run_starts) for name, values in ({"traces": traces} | _summands(columns)).items()}


def has_start(columns: Columns) -> Any:
    """Return whether each execution has a start time; ``columns``: `base` and START_TIMES."""
    start_us = floor_divide(pc.add(columns["base"], columns["start_ns"]), 1000)
    return pc.greater(pc.add(start_us, columns["start_us_fix"]), integer(0))


def _durations(columns: Columns) -> Any:
    """Return the duration of each execution in µs as the TF profiler counts it: 0 counts as 1."""
    start = pc.add(columns["base"], columns["start_ns"])
    end = pc.add(start, pc.add(columns["op_start_ns"], columns["op_end_ns"]))
    duration_us = pc.subtract(floor_divide(end, 1000), floor_divide(start, 1000))
    duration_us = pc.add(duration_us, columns["end_us_fix"])
    return pc.if_else(pc.equal(duration_us, integer(0)), integer(1), duration_us)


def _summands(columns: Columns) -> Columns:
    """Return the values to be summed, by column; 0 if the execution has no start time."""
    extra_bytes = pc.add(columns["persistent_bytes"], columns["temp_bytes"])
    summands = {
        "runs": integer(1),
        "sum_us": _durations(columns),
        "sum_ns": pc.add(columns["op_start_ns"], columns["op_end_ns"]),
        "requested_bytes": pc.add(columns["total_bytes"], extra_bytes),
        "peak_bytes": pc.add(columns["peak_bytes"], extra_bytes),
        "residual_bytes": pc.add(columns["live_bytes"], columns["persistent_bytes"]),
        "output_bytes": columns["output_bytes"],
    }
    is_counted = has_start(columns)
    return {name: pc.if_else(is_counted, values, integer(0)) for name, values in summands.items()}
