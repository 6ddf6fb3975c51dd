"""Rollups of selected traces.

If all traces of a generation are selected, its stored rollup is used. Otherwise the ops of its
selected traces are aggregated.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from . import segment
from .aggregation import INPUTS, durations
from .columns import column_list, flat, pc
from .devices import Devices, device_rows
from .merging import merge
from .rollup import NO_DEVICE, bases, canonical_after, canonical_of, rollup_of, sorted_by_node
from .snapshot import Snapshot

_OP_COLUMNS: Final = ("trace", "node", "device", *INPUTS)
_TIME_COLUMNS: Final = ("trace", "node", "device", "start_ns", "op_start_ns", "op_end_ns", "start_us_fix", "end_us_fix")
_TRACE_COLUMNS: Final = ("trace", "base_ns")


def rollup_of_all(snapshot: Snapshot) -> pa.Table:
    """Return the ROLLUP of all traces."""
    total, ops = snapshot.total(), snapshot.unsealed("ops", _OP_COLUMNS)
    if not ops.num_rows:
        return total
    devices = Devices(device_rows(snapshot.table("names")))
    canonical = canonical_after(ops, devices, canonical_of(total))
    return merge(
        total, rollup_of(sorted_by_node(ops, devices), snapshot.unsealed("traces", _TRACE_COLUMNS), devices, canonical)
    )


def rollup_of_traces(snapshot: Snapshot, traces: Sequence[int]) -> pa.Table:
    """Return the ROLLUP of ascending ``traces``, with the canonical devices of the whole job."""
    if not traces:
        return segment.SCHEMAS[segment.ROLLUP_NAME].empty_table()
    ops, devices = snapshot.unsealed("ops", _OP_COLUMNS), Devices(device_rows(snapshot.table("names")))
    canonical = canonical_after(ops, devices, canonical_of(snapshot.total()))
    trace_rows = snapshot.table("traces", _TRACE_COLUMNS)
    numbers = sorted(column_list(trace_rows, "trace"))
    parts = []
    for sealed in generations(snapshot, traces):
        if set(sealed.traces).issuperset(_traces_within(numbers, sealed.first_trace, sealed.last_trace)):
            parts.append(segment.read(sealed.rollup_path, segment.ROLLUP_NAME))
        else:
            groups = snapshot.groups("ops", sealed.generation, sealed.traces, _OP_COLUMNS)
            parts += [
                rollup_of(_ops_of_traces(group, sealed.traces), trace_rows, devices, canonical) for group in groups
            ]
    parts.append(rollup_of(sorted_by_node(_ops_of_traces(ops, traces), devices), trace_rows, devices, canonical))
    return _with_canonical(merge(*parts), canonical)


def times_by_trace(snapshot: Snapshot, traces: Sequence[int]) -> pa.Table:
    """Return the time of each node on each device in each of the ascending ``traces``.

    The columns are trace, node, device and us.
    """
    trace_rows, devices = snapshot.table("traces", _TRACE_COLUMNS), Devices(device_rows(snapshot.table("names")))
    groups = [_ops_of_traces(snapshot.unsealed("ops", _TIME_COLUMNS), traces)]
    for sealed in generations(snapshot, traces) if traces else ():
        groups += [
            _ops_of_traces(group, sealed.traces)
            for group in snapshot.groups("ops", sealed.generation, sealed.traces, _TIME_COLUMNS)
        ]
    return pa.concat_tables([_times(group, trace_rows, devices) for group in groups])


def _times(ops: pa.Table, trace_rows: pa.Table, devices: Devices) -> pa.Table:
    columns = {name: flat(ops[name]) for name in _TIME_COLUMNS}
    columns["base"] = bases(columns["trace"], trace_rows)
    us, has_start = durations(columns)
    table = pa.table(
        {"trace": columns["trace"], "node": columns["node"], "device": devices.unified(columns["device"]), "us": us}
    )
    keys = ["trace", "node", "device"]
    summed = table.filter(has_start).group_by(keys, use_threads=False).aggregate([("us", "sum")])
    return summed.select([*keys, "us_sum"]).rename_columns([*keys, "us"])


def _with_canonical(rollup: pa.Table, canonical: Any) -> pa.Table:
    """Return ``rollup`` with the final canonical devices.

    A node may get its canonical device in a later generation.
    """
    is_node_row = pc.equal(flat(rollup["device"]), NO_DEVICE)
    column = pc.if_else(is_node_row, canonical.take(flat(rollup["node"])), NO_DEVICE)
    return rollup.set_column(rollup.column_names.index("canonical"), rollup.schema.field("canonical"), column)


class SealedGeneration(NamedTuple):
    """A generation: its rollup, the range of its traces, and its selected traces."""

    generation: int
    rollup_path: Path
    first_trace: int
    last_trace: int
    traces: Sequence[int]


def generations(snapshot: Snapshot, traces: Sequence[int]) -> Iterator[SealedGeneration]:
    """Yield the generations that may have any of ``traces``, which ascend and are not empty.

    Later generations have higher trace numbers.
    """
    segments = snapshot.segments(segment.ROLLUP_NAME)
    first_index = bisect_left(segments, traces[0], key=lambda entry: segment.metadata(entry[1])["last_trace"])
    for generation, path in segments[first_index:]:
        trace_range = segment.metadata(path)
        if trace_range["first_trace"] > traces[-1]:
            return
        selected = _traces_within(traces, trace_range["first_trace"], trace_range["last_trace"])
        if selected:
            yield SealedGeneration(generation, path, trace_range["first_trace"], trace_range["last_trace"], selected)


def _traces_within(traces: Sequence[int], first: int, last: int) -> Sequence[int]:
    return traces[bisect_left(traces, first) : bisect_right(traces, last)]


def _ops_of_traces(ops: pa.Table, traces: Sequence[int]) -> pa.Table:
    numbers: Any = pa.array(traces, pa.uint32())
    return ops.filter(pc.is_in(ops["trace"], value_set=numbers)) if ops.num_rows else ops
