"""Reads the executions of some traces, only from row groups that may contain them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from . import segment
from .columns import changes, column_list, flat, pc, row_tuples
from .devices import Devices, device_rows
from .protocols import Executions
from .rollup import canonical_after, canonical_of
from .schema import JOB_TABLES, NONE_ID
from .snapshot import Snapshot
from .trace_ranges import generations

_LABEL_COLUMNS: Final = ("node", "label", "device")
TRACE_COLUMNS: Final = ("trace", "step", "base_ns")


def executions(snapshot: Snapshot, traces: Collection[int], columns: Sequence[str]) -> Executions:
    """Return the executions of ``traces``.

    ``columns``: the columns of `ops` to return.
    """
    ascending_traces = sorted(traces)
    numbers = pa.array(ascending_traces, pa.uint32())
    allocations, outputs = (
        rows_of_traces(snapshot, name, ascending_traces) for name in ("allocations", "output_memory")
    )
    names, trace_rows = snapshot.table("names"), _rows_of_traces(snapshot.table("traces", TRACE_COLUMNS), numbers)
    ops = _ops(snapshot, ascending_traces, columns)
    return Executions(ops, trace_rows, names, canonical(snapshot, names), allocations, outputs)


def rows_of_traces(snapshot: Snapshot, name: str, traces: Collection[int]) -> pa.Table:
    """Return the rows of ``traces`` in table ``name``; those of a trace are in order of arrival."""
    ascending_traces, columns = sorted(traces), JOB_TABLES[name].names
    if name == "ops":
        rows = _ops(snapshot, ascending_traces, columns)
    else:  # a copy has them in other generations than the ops of their traces, and a trace may have no ops
        groups = (segment.groups(path, name, ascending_traces, columns) for _, path in snapshot.segments(name))
        rows = _table(name, columns, [*chain.from_iterable(groups), snapshot.unsealed(name)])
    return _rows_of_traces(rows, pa.array(ascending_traces, pa.uint32()))


def _ops(snapshot: Snapshot, traces: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Return the ops that may belong to the ascending ``traces``.

    If one of the traces may be unsealed, all unsealed ops are included.
    """
    tables, sealed_traces = list[pa.Table](), 0
    for sealed in generations(snapshot, traces):
        tables += snapshot.groups("ops", sealed.generation, sealed.traces, columns)
        sealed_traces += len(sealed.traces)
    if sealed_traces < len(traces):
        tables.append(snapshot.unsealed("ops", columns))
    return _table("ops", columns, tables)


def _table(name: str, columns: Sequence[str], parts: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([JOB_TABLES[name].empty_table().select(list(columns)), *parts])


def canonical(snapshot: Snapshot, names: pa.Table) -> dict[int, int]:
    """Return node -> its canonical device in the whole job; ``names`` are the job's NAMES."""
    unsealed_ops = snapshot.unsealed("ops", ["node", "device"])
    devices: list[int] = canonical_after(
        unsealed_ops, Devices(device_rows(names)), canonical_of(snapshot.total())
    ).to_pylist()
    return {node: device for node, device in enumerate(devices) if device != NONE_ID}


def window_labels(snapshot: Snapshot, streams: Collection[int]) -> dict[int, int]:
    """Return node -> the lowest number of its labels in the traces of profiler sessions.

    Labels on the devices ``streams`` are names of kernels: they count for nodes without others.
    """
    traces = snapshot.table("traces", ("trace", "source"))
    is_window = pc.equal(traces["source"], pa.scalar(layout.XSPACE, traces["source"].type))
    windows = sorted(column_list(traces.filter(is_window), "trace"))
    labels: dict[int, tuple[bool, int]] = {}
    for ops in _labels_of(snapshot, windows, sorted(column_list(traces, "trace"))) if windows else ():
        # Sealed rows are sorted by node, so most rows repeat the one before.
        node_changes, label_changes, device_changes = (changes(flat(ops[name])) for name in _LABEL_COLUMNS)
        is_new = pc.or_(pc.or_(node_changes, label_changes), device_changes)
        for node, label, device in row_tuples(ops.filter(is_new), *_LABEL_COLUMNS):
            found = device in streams, label
            labels[node] = min(found, labels.get(node, found))
    return {node: label for node, (_, label) in labels.items()}


def _labels_of(snapshot: Snapshot, traces: Sequence[int], all_traces: Sequence[int]) -> Iterator[pa.Table]:
    """Yield node, label and device of the executions of ascending ``traces``, piece by piece."""
    numbers = pa.array(traces, pa.uint32())
    for sealed in generations(snapshot, traces):
        if sealed.is_whole(all_traces):  # reading the numbers of the traces takes most of the time
            yield from snapshot.groups("ops", sealed.generation, sealed.traces, _LABEL_COLUMNS)
        else:
            columns = ("trace", *_LABEL_COLUMNS)
            for group in snapshot.groups("ops", sealed.generation, sealed.traces, columns):
                yield _rows_of_traces(group, numbers)
    yield _rows_of_traces(snapshot.unsealed("ops", ("trace", *_LABEL_COLUMNS)), numbers)


def _rows_of_traces(table: pa.Table, numbers: Any) -> pa.Table:
    return table.filter(pc.is_in(table["trace"], value_set=numbers))
