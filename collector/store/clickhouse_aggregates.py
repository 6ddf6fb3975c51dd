"""Aggregates of a job's ops, computed by ClickHouse (schema.ROLLUP, schema.STEP_TIMES).

They equal those of rollup.py, aggregation.py and step_times.py.
"""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from .clickhouse_tables import CANONICAL_NAME
from .columns import flat, repeat, typed
from .devices import Devices
from .schema import NONE_ID, ROLLUP, STEP_TIMES
from .sql_queries import SqlQuery
from .step_times import BUCKET_OFFSET, DROPPED_BITS

#: Whether an execution has a start time: `start` is its start (ns, real time).
_STARTED: Final = "intDiv(start, 1000) - toInt64(start % 1000 < 0) + start_us_fix > 0"
#: Its duration in µs as the TF profiler counts it.
_MICROS: Final = (
    "intDiv(end, 1000) - toInt64(end % 1000 < 0) - intDiv(start, 1000) + toInt64(start % 1000 < 0) + end_us_fix"
)
_NODE_ROWS: Final[Any] = pa.schema([ROLLUP.field("node"), ROLLUP.field("traces")])
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


def rollup(query: SqlQuery, traces: Iterable[int] | None, devices: Devices, canonical: Any) -> pa.Table:
    """Return the ROLLUP of ``traces``, None for all.

    ``canonical``: CANONICAL of the whole job.
    """
    source = _executions(traces, devices)
    sums = ", ".join(f"sumIf(toInt64({value}), started) AS s_{name}" for name, value in _SUMS.items())
    by_device = query(
        f"SELECT node, unified, {NONE_ID} AS canonical, uniqExact(trace) AS traces, {sums} "  # noqa: S608
        f"FROM ({source}) AS executions "
        "GROUP BY node, unified"
    )
    cpus_and_gpus = ", ".join(map(str, devices.canonical_ids)) or "NULL"
    by_node = query(
        f"SELECT node, uniqExact(trace) AS traces FROM ({source}) AS executions "  # noqa: S608
        f"WHERE NOT ifNull(unified IN ({cpus_and_gpus}), 0) "
        f"OR (node, unified) IN (SELECT node, device FROM {CANONICAL_NAME}) GROUP BY node"
    )
    return _rollup_table(by_device, by_node, canonical)


def _rollup_table(by_device: pa.Table, by_node: pa.Table, canonical: Any) -> pa.Table:
    """Return the ROLLUP with the rows of devices and nodes."""
    nodes, traces = map(flat, typed(by_node, _NODE_ROWS).columns)
    device_of = dict(zip(canonical["node"].to_pylist(), canonical["device"].to_pylist(), strict=True))
    devices_of_nodes = [device_of.get(node, NONE_ID) for node in nodes.to_pylist()]
    columns: dict[str, Any] = {name: repeat(0, len(nodes), ROLLUP.field(name).type) for name in ROLLUP.names}
    columns |= {"node": nodes, "device": repeat(NONE_ID, len(nodes), pa.uint32())}
    columns |= {"canonical": pa.array(devices_of_nodes, pa.uint32()), "traces": traces}
    node_rows = pa.table({name: columns[name] for name in ROLLUP.names}, schema=ROLLUP)
    order: Any = [("node", "ascending"), ("device", "ascending")]
    return pa.concat_tables([typed(by_device, ROLLUP), node_rows]).sort_by(order).combine_chunks()


def histogram(query: SqlQuery, traces: Iterable[int] | None, devices: Devices) -> pa.Table:
    """Return the STEP_TIMES of ``traces``, None for all."""
    rows = query(
        f"SELECT node, unified AS device, {_BUCKET} AS bucket, count() AS steps "  # noqa: S608
        f"FROM ({_times(traces, devices)}) AS times GROUP BY node, unified, bucket ORDER BY node, unified, bucket"
    )
    return typed(rows, STEP_TIMES).combine_chunks()


def times(query: SqlQuery, traces: Iterable[int], devices: Devices) -> pa.Table:
    """Return the time of each node on each device in each trace: node, device, trace, ns."""
    rows = query(
        f"SELECT node, unified AS device, trace, ns FROM ({_times(traces, devices)}) AS times "  # noqa: S608
        "ORDER BY node, unified, trace"
    )
    types = {"node": pa.uint32(), "device": pa.uint32(), "trace": pa.uint32(), "ns": pa.int64()}
    return typed(rows, pa.schema(list(types.items())))


def persistent_allocations(query: SqlQuery, devices: Devices) -> pa.Table:
    """Return trace, node, device and bytes of executions with persistent bytes and a start."""
    return query(
        f"SELECT trace, node, device, persistent_bytes FROM ({_executions(None, devices)}) AS executions "  # noqa: S608
        "WHERE persistent_bytes <> 0 AND started ORDER BY row"
    )


def _times(traces: Iterable[int] | None, devices: Devices) -> str:
    """Return the query of the time of each node on each device in each trace, in ns."""
    return (
        "SELECT node, unified, trace, greatest(sum(op_start_ns + op_end_ns), 0) AS ns "  # noqa: S608
        f"FROM ({_executions(traces, devices)}) AS executions WHERE started GROUP BY node, unified, trace"
    )


def _executions(traces: Iterable[int] | None, devices: Devices) -> str:
    """Return the query of the ops of ``traces``, with what is computed for each of them."""
    condition = "" if traces is None else f" WHERE trace IN ({', '.join(map(str, traces)) or 'NULL'})"
    cases = "".join(f" WHEN {number} THEN {first}" for number, first in devices.spellings)
    unified = f"toUInt32(CASE device{cases} ELSE device END)" if cases else "device"
    return (
        f"SELECT *, {_STARTED} AS started, {_MICROS} AS micros FROM ("  # noqa: S608
        f"SELECT *, {unified} AS unified, base_ns + start_ns AS start, start + op_start_ns + op_end_ns AS end FROM ("
        f"SELECT * FROM ops{condition}) AS selected "
        "ANY LEFT JOIN (SELECT trace, base_ns FROM traces) AS bases USING (trace)) AS based"
    )
