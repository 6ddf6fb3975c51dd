"""Aggregates of a job's ops, computed by ClickHouse (schema.ROLLUP, schema.STEP_TIMES).

They equal those of rollup.py, aggregation.py and step_times.py.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from .aggregation import RESULTS
from .clickhouse_tables import CANONICAL_NAME
from .columns import typed
from .devices import Devices
from .merging import merge
from .schema import NONE_ID, ROLLUP, STEP_TIMES
from .segment import ROLLUP_NAME, TIMES_NAME
from .sql_queries import SqlQuery
from .step_times import BUCKET_OFFSET, DROPPED_BITS, merge_histograms

#: Whether an execution has a start time: `start` is its start (ns, real time).
_STARTED: Final = "intDiv(start, 1000) - toInt64(start % 1000 < 0) + start_us_fix > 0"
#: Its duration in µs as the TF profiler counts it.
_MICROS: Final = (
    "intDiv(end, 1000) - toInt64(end % 1000 < 0) - intDiv(start, 1000) + toInt64(start % 1000 < 0) + end_us_fix"
)
#: Column of ROLLUP -> what is summed, in the order of ROLLUP.
_SUMS: Final = {
    "runs": "1",
    "sum_us": "if(micros = 0, 1, micros)",
    "sum_ns": "op_start_ns + op_end_ns",
    "requested_bytes": "total_bytes + persistent_bytes + temp_bytes",
    "peak_bytes": "peak_bytes + persistent_bytes + temp_bytes",
    "residual_bytes": "live_bytes + persistent_bytes",
    "output_bytes": "output_bytes",
}
_BUCKET: Final = (
    f"toUInt16(greatest(bitShiftRight(reinterpretAsInt64(reinterpretAsString(toFloat64(ns))), {DROPPED_BITS})"
    f" - {BUCKET_OFFSET}, 0))"
)


class Sources(NamedTuple):
    """Queries of some traces: of the aggregates of their groups, and of the ops of the others.

    None if there are no such traces.
    """

    groups: SqlQuery | None
    ops: SqlQuery | None


def rollup(sources: Sources, devices: Devices) -> pa.Table:
    """Return the ROLLUP of ``sources``, without the canonical devices."""
    parts = [] if sources.groups is None else [_rollup_of_groups(sources.groups)]
    return merge(*parts, *(() if sources.ops is None else _rollups_of_ops(sources.ops, devices)))


def _rollup_of_groups(query: SqlQuery) -> pa.Table:
    """Return the ROLLUP of groups."""
    sums = ", ".join(f"sum({name}) AS s_{name}" for name in RESULTS)
    rows = query(
        f"SELECT node, device, {NONE_ID} AS canonical, {sums} FROM {ROLLUP_NAME} "  # noqa: S608
        "GROUP BY node, device ORDER BY node, device"
    )
    return typed(rows, ROLLUP).combine_chunks()


def _rollups_of_ops(query: SqlQuery, devices: Devices) -> Iterator[pa.Table]:
    """Yield the ROLLUP of the devices and that of the nodes."""
    source = _executions(devices)
    sums = ", ".join(f"sumIf(toInt64({value}), started) AS s_{name}" for name, value in _SUMS.items())
    by_device = query(
        f"SELECT node, unified, {NONE_ID} AS canonical, uniqExact(trace) AS traces, {sums} "  # noqa: S608
        f"FROM ({source}) AS executions "
        "GROUP BY node, unified ORDER BY node, unified"
    )
    yield typed(by_device, ROLLUP)
    cpus_and_gpus = ", ".join(map(str, devices.canonical_ids)) or "NULL"
    zeros = ", ".join(f"0 AS s_{name}" for name in _SUMS)
    by_node = query(
        f"SELECT node, {NONE_ID} AS device, {NONE_ID} AS canonical, uniqExact(trace) AS traces, {zeros} "  # noqa: S608
        f"FROM ({source}) AS executions WHERE NOT ifNull(unified IN ({cpus_and_gpus}), 0) "
        f"OR (node, unified) IN (SELECT node, device FROM {CANONICAL_NAME}) GROUP BY node ORDER BY node"
    )
    yield typed(by_node, ROLLUP)


def histogram(sources: Sources, devices: Devices) -> pa.Table:
    """Return the STEP_TIMES of ``sources``."""
    parts = [] if sources.groups is None else [_histogram_of_groups(sources.groups)]
    return merge_histograms(*parts, *(() if sources.ops is None else [_histogram_of_ops(sources.ops, devices)]))


def _histogram_of_groups(query: SqlQuery) -> pa.Table:
    """Return the STEP_TIMES of groups."""
    rows = query(
        f"SELECT node, device, bucket, sum(steps) AS s_steps FROM {TIMES_NAME} "  # noqa: S608
        "GROUP BY node, device, bucket ORDER BY node, device, bucket"
    )
    return typed(rows, STEP_TIMES).combine_chunks()


def _histogram_of_ops(query: SqlQuery, devices: Devices) -> pa.Table:
    """Return the STEP_TIMES of ops."""
    rows = query(
        f"SELECT node, unified AS device, {_BUCKET} AS bucket, count() AS steps "  # noqa: S608
        f"FROM ({_times(devices)}) AS times GROUP BY node, unified, bucket ORDER BY node, unified, bucket"
    )
    return typed(rows, STEP_TIMES).combine_chunks()


def times(query: SqlQuery, devices: Devices) -> pa.Table:
    """Return the time of each node on each device in each trace: node, device, trace, ns."""
    rows = query(
        f"SELECT node, unified AS device, trace, ns FROM ({_times(devices)}) AS times "  # noqa: S608
        "ORDER BY node, unified, trace"
    )
    types = {"node": pa.uint32(), "device": pa.uint32(), "trace": pa.uint32(), "ns": pa.int64()}
    return typed(rows, pa.schema(list(types.items())))


def _times(devices: Devices) -> str:
    """Return the query of the time of each node on each device in each trace, in ns."""
    return (
        "SELECT node, unified, trace, greatest(sum(op_start_ns + op_end_ns), 0) AS ns "  # noqa: S608
        f"FROM ({_executions(devices)}) AS executions WHERE started GROUP BY node, unified, trace"
    )


def _executions(devices: Devices) -> str:
    """Return the query of ops, with what is computed for each of them."""
    cases = "".join(f" WHEN {number} THEN {first}" for number, first in devices.spellings)
    unified = f"toUInt32(CASE device{cases} ELSE device END)" if cases else "device"
    return (
        f"SELECT *, {_STARTED} AS started, {_MICROS} AS micros FROM ("  # noqa: S608
        f"SELECT *, {unified} AS unified, base_ns + start_ns AS start, start + op_start_ns + op_end_ns AS end FROM ("
        "SELECT * FROM ops) AS selected "
        "ANY LEFT JOIN (SELECT trace, base_ns FROM traces) AS bases USING (trace)) AS based"
    )
