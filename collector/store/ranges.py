"""The rollup of some traces: of segments wholly inside by their rollups, of those partly inside row by row; no other is read."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from tfprof.collector.store import segment
from tfprof.collector.store.columns import pc
from tfprof.collector.store.devices import Devices, only
from tfprof.collector.store.merging import merge
from tfprof.collector.store.rollup import by_node, canonical_after, canonical_of, rollup_of
from tfprof.collector.store.snapshot import Snapshot
from tfprof.collector.store.sums import INPUTS

_OPS: Final = ("trace", "node", "device", *INPUTS)
_TRACES: Final = ("trace", "base_ns")


def everything(snapshot: Snapshot) -> pa.Table:
    """Return the ROLLUP of all traces."""
    total, ops = snapshot.total(), snapshot.unsealed("ops", _OPS)
    if not ops.num_rows:
        return total
    devices = Devices(only(snapshot.table("names")))
    canonical = canonical_after(ops, devices, canonical_of(total))
    return merge(total, rollup_of(by_node(ops, devices), snapshot.unsealed("traces", _TRACES), devices, canonical))


def some(snapshot: Snapshot, traces: Sequence[int]) -> pa.Table:
    """Return the ROLLUP of ``traces``, which ascend; nodes belong to their canonical devices in the whole job."""
    if not traces:
        return segment.SCHEMAS[segment.ROLLUP_NAME].empty_table()
    ops, devices = snapshot.unsealed("ops", _OPS), Devices(only(snapshot.table("names")))
    canonical = canonical_after(ops, devices, canonical_of(snapshot.total()))
    parts = []
    for generation, path in _sealed(snapshot, traces):
        if _inside(snapshot, generation, path, traces):
            parts.append(segment.read(path, segment.ROLLUP_NAME))
        else:
            bases = snapshot.generation("traces", generation, _TRACES)
            sorted_ops = (_of(lot, traces) for lot in snapshot.groups("ops", generation, traces, _OPS))
            parts += [rollup_of(lot, bases, devices, canonical) for lot in sorted_ops]
    tail = by_node(_of(ops, traces), devices)
    return merge(*parts, rollup_of(tail, snapshot.unsealed("traces", _TRACES), devices, canonical))


def _sealed(snapshot: Snapshot, traces: Sequence[int]) -> Iterator[tuple[int, Path]]:
    """Yield generation and rollup of those that may have any of ``traces``; later generations have traces with higher numbers."""
    segments = snapshot.segments(segment.ROLLUP_NAME)
    begin = bisect_left(segments, traces[0], key=lambda each: segment.metadata(each[1])["last_trace"])
    for generation, path in segments[begin:]:
        if segment.metadata(path)["first_trace"] > traces[-1]:
            return
        yield generation, path


def _inside(snapshot: Snapshot, generation: int, path: Path, traces: Sequence[int]) -> bool:
    """Whether all traces of a generation are among ``traces``."""
    span = segment.metadata(path)
    first, last = span["first_trace"], span["last_trace"]
    mine = traces[bisect_left(traces, first) : bisect_right(traces, last)]
    if len(mine) == last - first + 1:
        return True
    return bool(mine) and set(mine).issuperset(
        snapshot.generation("traces", generation, ("trace",))["trace"].to_pylist()
    )


def _of(ops: pa.Table, traces: Sequence[int]) -> pa.Table:
    wanted: Any = pa.array(traces, pa.uint32())
    return ops.filter(pc.is_in(ops["trace"], value_set=wanted)) if ops.num_rows else ops
