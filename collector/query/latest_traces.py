"""Reads the executions of the latest traced steps, one by one."""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from ..store.columns import pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import DEVICE, LABEL, NODE
from ..summaries.step_records import OpExecution, StepTrace
from ..tfviews.nodes import Node, interned_texts

#: Maximum number of traced steps whose executions are read one by one; the latest steps are read.
SAMPLED_STEPS: Final = 8
#: Maximum number of these executions; the latest trace is read even if it has more.
_EXECUTIONS_MAX: Final = 400_000

_TRACE_COLUMNS: Final = ["trace", "kind", "step", "start_ns", "base_ns", "duration_ns", "rows"]
_OP_COLUMNS: Final = ["trace", "node", "device", "label", "thread", "start_ns", "op_start_ns", "op_end_ns"]


def latest_traces(job: JobReader, nodes: Sequence[Node], steps: Mapping[int, Sequence[int]]) -> tuple[StepTrace, ...]:
    """Return the latest traces of the last SAMPLED_STEPS of ``steps`` (step -> its traces).

    They have at most _EXECUTIONS_MAX executions in total, unless the latest trace alone has more.
    """
    numbers = [trace for step in sorted(steps)[-SAMPLED_STEPS:] for trace in steps[step]]
    if not numbers:
        return ()
    table = job.table("traces", _TRACE_COLUMNS)
    sampled = table.filter(pc.is_in(table["trace"], value_set=pa.array(numbers, pa.uint32()))).select(_TRACE_COLUMNS)
    counts = _steps_together(job, sampled)
    rows_left = _EXECUTIONS_MAX
    selected: dict[int, tuple[int, int, int, int]] = {}
    for trace, kind, step, start_ns, base_ns, duration_ns, rows in sorted(row_tuples(sampled), reverse=True):
        rows_left -= rows
        if rows_left < 0 and selected:
            break
        selected[trace] = (step, duration_ns, base_ns - start_ns, counts.get((kind, step), 1))
    executions = _executions(job, nodes, {trace: offset_ns for trace, (_, _, offset_ns, _) in selected.items()})
    return tuple(
        StepTrace(step, duration_ns, tuple(executions[trace]), count)
        for trace, (step, duration_ns, _, count) in reversed(selected.items())
    )


def _steps_together(job: JobReader, traces: pa.Table) -> dict[tuple[int, int], int]:
    """Return (kind, first step) -> the number of steps that share a span, if there are several."""
    spans = job.table("spans", ["kind", "ordinal", "count", "flags"])
    several = spans.filter(
        pc.and_(
            pc.greater(spans["count"], pa.scalar(1, pa.uint32())),
            pc.is_in(spans["ordinal"], value_set=pc.unique(traces["step"])),
        )
    )
    return {(kind, ordinal): count for kind, ordinal, count in row_tuples(several, "kind", "ordinal", "count")}


def _executions(job: JobReader, nodes: Sequence[Node], traces: Mapping[int, int]) -> dict[int, list[OpExecution]]:
    """Return the executions of ``traces``; the values are added to their times (ns)."""
    names = job.table("names")
    node_names, devices, labels = (
        interned_texts(names, NODE),
        interned_texts(names, DEVICE),
        interned_texts(names, LABEL),
    )
    devices = {number: text.lower() for number, text in devices.items()}
    ops = {node.name: node.op for node in nodes}
    executions: dict[int, list[OpExecution]] = {trace: [] for trace in traces}
    rows = job.executions(list(traces), _OP_COLUMNS).ops
    rows = rows.filter(pc.is_in(rows["trace"], value_set=pa.array(traces, pa.uint32()))).sort_by("start_ns")
    for trace, number, device, label, thread, recorded_ns, op_start_ns, op_end_ns in row_tuples(rows):
        name, start_ns = node_names[number], recorded_ns + traces[trace]
        op = ops.get(name) or labels.get(label, "")
        end_ns = start_ns + op_start_ns + op_end_ns
        executions[trace].append(OpExecution(name, op, devices[device], thread, start_ns, end_ns))
    return executions
