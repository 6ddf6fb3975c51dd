"""Rollups and histograms of selected traces.

If all traces of a generation are selected, its stored aggregate is used. Otherwise the ops of its
selected traces are aggregated.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from . import segment, step_times
from .aggregation import INPUTS
from .columns import column_list, pc
from .devices import Devices, device_rows
from .merging import merge, with_canonical
from .rollup import canonical_after, canonical_of, rollup_of, sorted_by_node
from .snapshot import Snapshot

_OP_COLUMNS: Final = ("trace", "node", "device", *INPUTS)
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
        if sealed.is_whole(numbers):
            parts.append(segment.read(sealed.rollup_path, segment.ROLLUP_NAME))
        else:
            groups = snapshot.groups("ops", sealed.generation, sealed.traces, _OP_COLUMNS)
            parts += [
                rollup_of(_ops_of_traces(group, sealed.traces), trace_rows, devices, canonical) for group in groups
            ]
    parts.append(rollup_of(sorted_by_node(_ops_of_traces(ops, traces), devices), trace_rows, devices, canonical))
    return with_canonical(merge(*parts), canonical)


def unit_times_of_all(snapshot: Snapshot, rollup: pa.Table) -> pa.Table:
    """Return `step_times.unit_times` over all traces; ``rollup``: their ROLLUP."""
    total = snapshot.aggregate(segment.TOTAL_TIMES_NAME, snapshot.info.total)
    if total is None:
        return unit_times_of_traces(
            snapshot, sorted(column_list(snapshot.table("traces", ("trace",)), "trace")), rollup
        )
    histogram = _Rows(snapshot, snapshot.unsealed("traces", _TRACE_COLUMNS)).unsealed(None, step_times.histogram_of)
    return step_times.unit_times(step_times.merge_histograms(total, histogram), rollup)


def unit_times_of_traces(snapshot: Snapshot, traces: Sequence[int], rollup: pa.Table) -> pa.Table:
    """Return `step_times.unit_times` over ascending ``traces``; ``rollup``: their ROLLUP."""
    trace_rows = snapshot.table("traces", _TRACE_COLUMNS)
    rows, numbers = _Rows(snapshot, trace_rows), sorted(column_list(trace_rows, "trace"))
    parts = chain(_sealed_histograms(rows, traces, numbers), [rows.unsealed(traces, step_times.histogram_of)])
    return step_times.unit_times(step_times.merge_many(parts), rollup)


def _sealed_histograms(rows: "_Rows", traces: Sequence[int], numbers: Sequence[int]) -> Iterator[pa.Table]:
    """Yield the STEP_TIMES of ``traces`` in sealed generations; ``numbers``: all traces."""
    for sealed in generations(rows.snapshot, traces) if traces else ():
        whole = rows.snapshot.aggregate(segment.TIMES_NAME, sealed.generation) if sealed.is_whole(numbers) else None
        yield from rows.sealed(sealed, step_times.histogram_of) if whole is None else [whole]


def times_by_trace(snapshot: Snapshot, traces: Sequence[int]) -> pa.Table:
    """Return the time of each node on each device in each of the ascending ``traces``.

    The columns are node, device, trace and ns.
    """
    rows = _Rows(snapshot, snapshot.table("traces", _TRACE_COLUMNS))
    parts = [rows.unsealed(traces, step_times.times_by_trace)]
    for sealed in generations(snapshot, traces) if traces else ():
        parts += rows.sealed(sealed, step_times.times_by_trace)
    return pa.concat_tables(parts)


#: Aggregates sorted ops; the parameters are those of `step_times.times_by_trace`.
_Aggregate = Callable[[pa.Table, pa.Table, Devices], pa.Table]


class _Rows:
    """The ops of a snapshot, to be aggregated; ``trace_rows``: the TRACES rows of their traces."""

    def __init__(self, snapshot: Snapshot, trace_rows: pa.Table) -> None:
        self.snapshot = snapshot
        self._trace_rows = trace_rows
        self._devices = Devices(device_rows(snapshot.table("names")))

    def unsealed(self, traces: Sequence[int] | None, aggregate: _Aggregate) -> pa.Table:
        """Aggregate the unsealed ops of ``traces``, None for all."""
        ops = self.snapshot.unsealed("ops", step_times.COLUMNS)
        ops = ops if traces is None else _ops_of_traces(ops, traces)
        return aggregate(sorted_by_node(ops, self._devices), self._trace_rows, self._devices)

    def sealed(self, sealed: "SealedGeneration", aggregate: _Aggregate) -> Iterator[pa.Table]:
        """Aggregate the ops of the selected traces of a generation, one group of rows at a time."""
        for group in self.snapshot.groups("ops", sealed.generation, sealed.traces, step_times.COLUMNS):
            yield aggregate(_ops_of_traces(group, sealed.traces), self._trace_rows, self._devices)


class SealedGeneration(NamedTuple):
    """A generation: its rollup, the range of its traces, and its selected traces."""

    generation: int
    rollup_path: Path
    first_trace: int
    last_trace: int
    traces: Sequence[int]

    def is_whole(self, numbers: Sequence[int]) -> bool:
        """Whether all traces of the generation are selected; ``numbers``: all traces of the job."""
        return set(self.traces).issuperset(_traces_within(numbers, self.first_trace, self.last_trace))


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
