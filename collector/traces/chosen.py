"""Chooses the traced steps that an export covers."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..query.job_selection import Selection
from ..query.kind_selection import resolve_kinds
from ..query.profile import matching_devices, no_step_since, no_such_device, no_such_step, traces_since
from ..store.columns import integer, pc
from ..store.protocols import JobReader
from ..store.schema import DEVICE
from ..summaries.steps import rows_of_kinds
from ..tfviews.nodes import device_names, interned_texts

#: Maximum number of executions in a timeline, unless its steps are named.
SLICES_MAX: Final = 200_000
_COLUMNS: Final = ("trace", "kind", "step", "key", "start_ns", "duration_ns", "base_ns", "rows", "thread")


class JobTraces(NamedTuple):
    """A job with its chosen traces (columns of TRACES), in order of time.

    ``devices``: ids of the chosen devices, None for all. ``left_out``: number of traces that were
    left out because there were too many.
    """

    job: JobReader
    traces: pa.Table
    devices: Sequence[int] | None
    left_out: int

    @property
    def window_ns(self) -> tuple[int, int] | None:
        """The time from the start of the first trace to the end of the last; None without any."""
        if not self.traces.num_rows:
            return None
        starts, ends = self.traces["start_ns"], pc.add(self.traces["start_ns"], self.traces["duration_ns"])
        return pc.min(starts).as_py(), pc.max(ends).as_py()

    @property
    def executed_ns(self) -> tuple[int, int] | None:
        """The same time, from the first execution on if that is earlier."""
        window = self.window_ns
        if window is None:
            return None
        bases = self.traces.filter(pc.greater(self.traces["base_ns"], integer(0)))["base_ns"]
        return min(window[0], pc.min(bases).as_py() or window[0]), window[1]


def chosen_traces(selection: Selection, rows_max: int | None = None, *, needs_traces: bool = True) -> list[JobTraces]:
    """Return the jobs of ``selection`` with their selected traces.

    The kinds of steps are the selected ones, else the main kind of each job. ``rows_max``: only the
    last traces of all jobs that have at most this number of executions together; at least one
    trace. ``needs_traces``: if no step was traced since the selected time, it is an error. Raises
    UsageError ``no-such-step``, ``no-such-kind``, ``no-such-device``.
    """
    tables = [(job, job.table("traces", _COLUMNS)) for job in selection.jobs]
    kinds = None if selection.kinds is None else resolve_kinds(tables, selection.kinds)
    of_steps = [(job, _of_steps(job, table, selection.steps, kinds)) for job, table in tables]
    if selection.steps is not None and _has_rows(tables) and not _has_rows(of_steps):
        raise no_such_step(tables, kinds or resolve_kinds(tables, None), *selection.steps)
    selected = [(job, traces_since(table, selection.since_ns)) for job, table in of_steps]
    if needs_traces and _has_rows(of_steps) and not _has_rows(selected):
        raise no_step_since([table for _, table in of_steps], selection.since_ns)
    devices = _devices(selection)
    first_ns = None if rows_max is None else _first_start([table for _, table in selected], rows_max)
    return [
        JobTraces(job, kept, devices[number], table.num_rows - kept.num_rows)
        for number, (job, table) in enumerate(selected)
        for kept in [table if first_ns is None else table.filter(pc.greater_equal(table["start_ns"], first_ns))]
    ]


def _of_steps(job: JobReader, table: pa.Table, steps: tuple[int, int] | None, kinds: Sequence[int] | None) -> pa.Table:
    table = rows_of_kinds(table, resolve_kinds([(job, table)], None) if kinds is None else kinds)
    if steps is not None:
        first, last = (pa.scalar(step, pa.uint64()) for step in steps)
        table = table.filter(pc.and_(pc.greater_equal(table["step"], first), pc.less_equal(table["step"], last)))
    return table.sort_by([("start_ns", "ascending"), ("trace", "ascending")])


def _has_rows(tables: Sequence[tuple[JobReader, pa.Table]]) -> bool:
    return any(table.num_rows for _, table in tables)


def _first_start(tables: Sequence[pa.Table], rows_max: int) -> Any:
    """Return the start of the first trace to keep, None if all can be kept."""
    table = pa.concat_tables(tables).sort_by([("start_ns", "descending")])
    kept = pc.less_equal(pc.cumulative_sum(table["rows"].cast(pa.int64())), integer(rows_max))
    last = max(pc.sum(kept.cast(pa.int64())).as_py() or 0, 1)
    return None if last >= table.num_rows else table["start_ns"][last - 1]


def _devices(selection: Selection) -> list[Sequence[int] | None]:
    """Return the ids of the selected devices of each job."""
    pattern = selection.device
    if pattern is None:
        return [None] * len(selection.jobs)
    names = [job.table("names") for job in selection.jobs]
    devices = [sorted(matching_devices(device_names(table), pattern)) for table in names]
    if not any(devices):
        raise no_such_device(pattern, {name for table in names for name in interned_texts(table, DEVICE).values()})
    return list(devices)
