"""Reads one job as parts of a trace."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final

import pyarrow as pa

from ..query.alerts import alert_rows
from ..store.columns import column_list, flat, flat_table, integer, integers, pc, repeat
from ..store.devices import ITERATOR_DEVICE
from ..store.schema import DEVICE
from ..summaries.jobs import functions_of
from ..summaries.kinds import is_activity, kind_name, step_kind_of
from ..summaries.op_classes import WAITING_OPS
from ..summaries.steps import possible_starts, sampled
from ..tfviews.nodes import interned_bytes, interned_texts
from .chosen import JobTraces
from .curves import curves, memory_curves
from .executions import Batch, batches
from .flows import flows
from .groups import Groups
from .labels import Labels
from .model import SPAN, STEP, Label, Mark, Part, Process, Slices, Step
from .moments import moments

#: Groups of tracks besides the devices.
SPANS, TRACED_STEPS, EVENTS = "steps and phases", "traced steps", "events and alerts"
_SPAN_COLUMNS: Final = ("kind", "ordinal", "count", "start_ns", "total_ns", "key", "thread", "flags")
#: Beginning of the devices of a job that is not distributed.
_LOCAL: Final = "/job:localhost/replica:0/task:0"
#: The factor of the upper half of 64 bits.
_HIGH_WORD: Final = pa.scalar(1 << 32, pa.uint64())
#: Upper bound of the flows of a job.
_FLOWS_MAX: Final = 1 << 40
#: Maximum number of slices in a part. The output of a format for one part is in memory as a whole.
PART_ROWS: Final = 20_000
#: The last time that a trace can have (ns), in the year 2262.
LAST_NS: Final = (1 << 63) - 1


class JobTrace:
    """One job of a trace; ``window_ns``: only what overlaps this interval.

    ``left_out``: number of traced steps that were left out because there were too many.
    """

    def __init__(
        self,
        process: Process,
        chosen: JobTraces,
        tracks: Iterator[int],
        window_ns: tuple[int, int],
        labels: Labels | None = None,
    ) -> None:
        job = self._job = chosen.job
        self._chosen = chosen
        self.process, self.left_out = process, chosen.left_out
        self._groups = Groups(process, tracks)
        self._flow_numbers = count(process.number * _FLOWS_MAX)
        self._functions = functions_of(job.info)
        spans = job.table("spans", _SPAN_COLUMNS)
        starts, ends = possible_starts(spans), pc.add(spans["start_ns"], spans["total_ns"])
        # The starts of sampled steps are estimates: on threads of their own, they contain nothing.
        threads = pc.if_else(sampled(spans), pc.negate(starts), spans["thread"].cast(pa.int64()))
        columns = {"start_ns": starts, "total_ns": pc.subtract(ends, starts), "thread": threads}
        spans = pa.table({name: spans[name] for name in _SPAN_COLUMNS} | columns)
        self._spans = _within(spans, starts, ends, window_ns)
        self._samples, self._events, self._alerts = (
            _within(table, table[time], table[time], window_ns)
            for table, time in (
                (job.table("samples"), "t_ns"),
                (job.table("events"), "t_ns"),
                (alert_rows(job), "found_ns"),
            )
        )
        self._labels = labels or Labels(job, chosen.traces)
        self._steps: list[Step] = []

    def starts_ns(self) -> Iterator[int]:
        """Yield the earliest time of each source of parts."""
        traces = self._chosen.traces
        for times in (
            traces["start_ns"],
            traces.filter(pc.greater(traces["base_ns"], 0))["base_ns"],  # 0: no execution has a start
            self._spans["start_ns"],
            self._samples["t_ns"],
            self._events["t_ns"],
            self._alerts["found_ns"],
        ):
            if len(times):
                yield pc.min(times).as_py()

    def parts(self, *, with_executions: bool = True, with_curves: bool = True) -> Iterator[Part]:
        """Yield the parts of the job."""
        yield self.process
        yield from self._step_slices(SPANS, SPAN, self._spans, "ordinal", "total_ns")
        yield from self._step_slices(TRACED_STEPS, STEP, self._chosen.traces, "step", "duration_ns")
        yield from self._marks()
        if with_curves:
            yield from curves(self.process.number, self._job, self._samples)
            yield from memory_curves(self.process.number, self._job, self._chosen.traces)
        if with_executions:
            yield from self._executions()

    def _step_slices(self, group: str, category: str, table: pa.Table, step: str, duration: str) -> Iterator[Part]:
        rows = flat_table(table)
        kinds = [
            kind_name(step_kind_of(kind, key), self._functions)
            for kind, key in zip(integers(rows["kind"]), integers(rows["key"]), strict=True)
        ]
        counts = integers(rows["count"]) if "count" in rows.column_names else [1] * len(kinds)
        names = [
            kind if number == 1 else f"{number} {kind}{'' if is_activity(span_kind) else ' steps'}"
            for kind, number, span_kind in zip(kinds, counts, integers(rows["kind"]), strict=True)
        ]
        first_step = len(self._steps)
        self._steps += map(Step, kinds, column_list(rows, step), counts)
        columns = {
            "label": pa.array([self._labels.number(Label(name, category)) for name in names], pa.uint32()),
            "step": pa.array(range(first_step, len(self._steps)), pa.uint32()),
            "start_ns": rows["start_ns"],
            "duration_ns": pc.max_element_wise(rows[duration], integer(0)),
            "bytes": repeat(0, rows.num_rows, pa.int64()),
            "thread": rows["thread"],
        }
        yield from self._packed(group, pa.table(columns), nested=True)

    def _executions(self) -> Iterator[Part]:
        traces = self._chosen.traces
        kinds = [
            kind_name(step_kind_of(kind, key), self._functions)
            for kind, key in zip(integers(traces["kind"]), integers(traces["key"]), strict=True)
        ]
        first_step = len(self._steps)
        self._steps += map(Step, kinds, column_list(traces, "step"))
        for batch in batches(self._job, traces, self._chosen.devices):
            yield from self._batch(batch, first_step)

    def _batch(self, batch: Batch, first_step: int) -> Iterator[Part]:
        rows = batch.rows.filter(batch.rows["has_start"])
        position = pc.index_in(flat(rows["trace"]), value_set=flat(self._chosen.traces["trace"]))
        table = pa.table(
            {
                "device": rows["device"],
                "label": self._labels.of_executions(rows, batch.names),
                "step": pc.add(position, first_step).cast(pa.uint32()),
                "start_ns": rows["start_ns"],
                "duration_ns": rows["duration_ns"],
                "bytes": rows["requested_bytes"],
                "thread": rows["thread"],
            }
        )
        table = table.append_column("waits", self._waits(table, batch.names))
        names = interned_texts(batch.names, DEVICE)
        if self._labels.has_several_devices:
            leaving, entering = flows(table, self._labels.all, names, self._labels.inputs_of, self._flow_numbers)
            table = table.append_column("leaving", leaving).append_column("entering", entering)
        for device in sorted(pc.unique(table["device"]).to_pylist(), key=names.__getitem__):
            on_device = table.filter(pc.equal(table["device"], pa.scalar(device, pa.uint32())))
            # While an asynchronous op waits, its thread runs other ops, which it did not call.
            group = names[device].removeprefix(_LOCAL) or names[device]
            yield from self._packed(group, on_device, nested=False)

    def _waits(self, rows: pa.Table, names: pa.Table) -> Any:
        """Return for each execution whether its step waits for input meanwhile.

        These are the ops that wait, and the iterators that run on the threads of these ops.
        """
        labels = [number for number, label in enumerate(self._labels.all) if label.op in WAITING_OPS]
        devices = [number for number, name in interned_bytes(names, DEVICE).items() if name == ITERATOR_DEVICE]
        is_op = pc.is_in(rows["label"], value_set=pa.array(labels, pa.uint32()))
        is_iterator = pc.is_in(rows["device"], value_set=pa.array(devices, pa.uint32()))
        thread = pc.add(pc.multiply(rows["step"].cast(pa.uint64()), _HIGH_WORD), rows["thread"].cast(pa.uint64()))
        on_thread = pc.is_in(thread, value_set=flat(thread.filter(is_op)))
        return pc.or_(is_op, pc.and_(is_iterator, on_thread))

    def _marks(self) -> Iterator[Part]:
        found = moments(self._job, self._events, self._alerts)
        if found:
            track, new_tracks = self._groups.track(EVENTS)
            yield from new_tracks
            yield from (Mark(track.number, moment.time_ns, moment.slug, moment.text) for moment in found)

    def _packed(self, group: str, rows: pa.Table, *, nested: bool) -> Iterator[Part]:
        if rows.num_rows:
            new_tracks, slices = self._groups.pack(group, rows, nested=nested)
            yield from new_tracks
            for at in range(0, slices.num_rows, PART_ROWS):
                yield Slices(self.process.number, slices.slice(at, PART_ROWS), self._labels.all, self._steps)


def _within(table: pa.Table, starts: Any, ends: Any, window: Sequence[int]) -> pa.Table:
    first, last = window
    return table.filter(pc.and_(pc.greater_equal(ends, first), pc.less_equal(starts, last)))
