"""Reads the executions of traced steps, in batches of whole steps, with the times of the views."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..query.step_entries import row_batches
from ..store.aggregation import has_start
from ..store.columns import flat, integer, pc, row_tuples, scatter
from ..store.devices import Devices, device_rows
from ..store.protocols import JobReader
from ..store.rollup import sorted_by_node
from ..store.schema import NONE_ID
from ..tfviews.nodes import stream_devices

#: Approximate number of executions in a batch.
BATCH_ROWS: Final = 60_000
_TIMES: Final = ("start_ns", "op_start_ns", "op_end_ns", "start_us_fix", "end_us_fix")
_BYTES: Final = ("total_bytes", "peak_bytes", "live_bytes", "output_bytes", "temp_bytes", "persistent_bytes")
_COLUMNS: Final = ("trace", "node", "device", "thread", *_TIMES, *_BYTES)


class Batch(NamedTuple):
    """Executions, and the names (NAMES) of their nodes and devices.

    The columns of ``rows`` are trace, node, device, thread; start_ns (real time) and duration_ns;
    has_start, without which an execution does not count in the views; counted: whether the views
    count the execution; and requested_bytes, peak_bytes, residual_bytes, output_bytes.
    """

    rows: pa.Table
    names: pa.Table


def batches(
    job: JobReader, traces: pa.Table, devices: Collection[int] | None = None, further: Sequence[str] = ()
) -> Iterator[Batch]:
    """Yield the executions of ``traces`` (columns trace and rows), in the order of ``traces``.

    Those of a batch are sorted by node, device and trace.

    ``devices``: only those on devices with these ids. ``further``: additional columns of OPS for
    the rows, as they are stored. They must not have the name of a column of `Batch`.
    """
    for numbers in row_batches(row_tuples(traces, "trace", "rows"), BATCH_ROWS):
        executions = job.executions(numbers, list(dict.fromkeys([*_COLUMNS, *further])))
        ops = executions.ops.filter(pc.is_in(executions.ops["trace"], value_set=pa.array(numbers, pa.uint32())))
        if devices is not None:
            ops = ops.filter(pc.is_in(ops["device"], value_set=pa.array(devices, pa.uint32())))
        if ops.num_rows:  # stores keep them in different orders, before and after sealing
            ops = sorted_by_node(ops, Devices(device_rows(executions.names)))
        rows = _rows(ops, executions.traces, executions.names, executions.canonical)
        for name in further:
            rows = rows.append_column(name, flat(ops[name]))
        yield Batch(rows, executions.names)


def _rows(ops: pa.Table, traces: pa.Table, names: pa.Table, canonical: Any) -> pa.Table:
    column: dict[str, Any] = {name: flat(ops[name]) for name in _COLUMNS}
    column["base"] = flat(traces["base_ns"]).take(pc.index_in(column["trace"], value_set=flat(traces["trace"])))
    is_started = has_start(column)
    duration = pc.max_element_wise(pc.add(column["op_start_ns"], column["op_end_ns"]), integer(0))
    held = pc.add(column["persistent_bytes"], column["temp_bytes"])
    columns = {name: column[name] for name in ("trace", "node", "device", "thread")} | {
        "start_ns": pc.add(column["base"], column["start_ns"]),
        "duration_ns": duration,
        "has_start": is_started,
        "counted": pc.and_(is_started, _is_counted(column["node"], column["device"], names, canonical)),
        "requested_bytes": pc.add(column["total_bytes"], held),
        "peak_bytes": pc.add(column["peak_bytes"], held),
        "residual_bytes": pc.add(column["live_bytes"], column["persistent_bytes"]),
        "output_bytes": column["output_bytes"],
    }
    return pa.table(columns)


def _is_counted(node: Any, device: Any, names: pa.Table, canonical: Any) -> Any:
    """Return whether an execution is on the canonical device of its node, or on a stream."""
    streams = stream_devices(names)
    nodes = pa.array(list(canonical), pa.uint32())
    by_node = scatter(nodes, pa.array(list(canonical.values()), pa.uint32()), _size(node), NONE_ID)
    unified = Devices(names).unified
    on_canonical = pc.equal(unified(device), unified(by_node).take(node))
    return pc.or_(on_canonical, pc.is_in(device, value_set=pa.array(streams, pa.uint32())))


def _size(ids: Any) -> int:
    """Return the number of ids from 0 to the highest one."""
    return int(pc.max(ids).as_py()) + 1 if len(ids) else 0
