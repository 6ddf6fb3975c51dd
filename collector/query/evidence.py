"""Reads the evidence for checkers from a store."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from ..advice.evidence import Evidence, IdenticalGraphs, NewNodes, OpExecution, StepMemory, StepTrace, TimedSteps
from ..store.columns import pc, row_tuples
from ..store.devices import can_be_canonical
from ..store.protocols import JobReader
from ..store.schema import DEVICE, LABEL, NODE
from ..summaries.jobs import channel_words
from ..summaries.kinds import by_kind, main_kind_of
from ..summaries.steps import SPECIAL
from ..tfviews.entries import Entry
from ..tfviews.nodes import Node, interned_texts
from ..tfviews.own_files import own_location
from ..tfviews.parity import DEFAULT, Parity
from .node_times import node_times
from .profile import profile
from .required_facts import GRAPH, STACKS
from .step_entries import entries_by_step, step_traces
from .surroundings import cpu_loads, host_samples, memory_levels, steady_period

#: Maximum number of traced steps whose executions are read one by one; the latest steps are read.
SAMPLED_STEPS: Final = 8
#: Maximum number of these executions; the latest trace is read even if it has more.
_EXECUTIONS_MAX: Final = 400_000
#: Maximum number of latest rows of timed steps that are read.
TIMED_ROWS_MAX: Final = 100_000

_TIMED_COLUMNS: Final = ["ordinal", "count", "start_ns", "total_ns", "flags", "key"]
_TRACE_COLUMNS: Final = ["trace", "step", "duration_ns", "rows"]


def gather(job: JobReader, parity: Parity = DEFAULT) -> Evidence:
    """Read the evidence of a job that the checkers of ``parity`` need."""
    job_profile = profile(job, required_facts=(GRAPH, STACKS), parity=parity)
    nodes = tuple(job_profile.nodes) if job_profile else ()
    steps = step_traces(job, separate_functions=parity.separates_kinds)
    last_entries = _last_entries(job, nodes, steps, separate_functions=parity.separates_kinds)
    if not parity.has_own_advice:
        return Evidence(nodes=nodes, has_steps=bool(steps), last_entries=last_entries, parity=parity)
    spans, samples = job.table("spans"), job.table("samples")
    step_kind, timed_steps = _timed_steps(job, spans)
    period = steady_period(spans)
    return Evidence(
        nodes=nodes,
        has_steps=bool(steps),
        last_entries=last_entries,
        times=node_times(job_profile).by_node if job_profile and job_profile.trace_count else {},
        parity=parity,
        step_kind=step_kind,
        timed_steps=timed_steps,
        step_traces=_latest_traces(job, nodes, steps),
        step_memory=_step_memory(job, steps),
        memory_samples=memory_levels(samples, period) if period else (),
        load=cpu_loads(samples, host_samples(job, samples)),
        new_nodes=_new_nodes(job),
        graphs=_identical_graphs(job, nodes),
        first_calls=_first_calls(spans),
    )


def _last_entries(
    job: JobReader, nodes: Sequence[Node], steps: Mapping[int, Sequence[int]], *, separate_functions: bool
) -> dict[str, tuple[int, Entry]]:
    """Return for each node on a GPU its last step with an entry, and the entry."""
    gpu_by_node = {node.name: node.devices[0] for node in nodes if node.devices and "gpu" in node.devices[0]}
    if not gpu_by_node:
        return {}
    names = job.table("names")
    node_names, devices = (
        interned_texts(names, NODE),
        {number: text.lower() for number, text in interned_texts(names, DEVICE).items()},
    )
    canonical_ids = {
        number for number, text in devices.items() if can_be_canonical(text.encode("utf-8", "surrogateescape"))
    }
    step_of_trace = {trace: step for step, traces in steps.items() for trace in traces}
    last_steps: dict[str, int] = {}
    for number, device, trace in job.last_traces():
        name = node_names.get(number)  # a running job may add a name after the names are read
        if (
            name in gpu_by_node
            and trace in step_of_trace
            and (device not in canonical_ids or devices[device] == gpu_by_node[name])
        ):
            last_steps[name] = max(last_steps.get(name, 0), step_of_trace[trace])
    return {
        name: (step, entry)
        for step, entries in entries_by_step(job, set(last_steps.values()), separate_functions=separate_functions)
        for name, entry in entries.items()
        if last_steps.get(name) == step
    }


def _timed_steps(job: JobReader, spans: pa.Table) -> tuple[str, tuple[TimedSteps, ...]]:
    """Return the main kind of step of the job, and the latest steps of this kind on one thread.

    The thread is the one with the most time in these steps. Without timed steps, the kind is ''.
    """
    kinds: dict[int, Any] = dict.fromkeys(pc.unique(spans["kind"]).to_pylist())
    kind = main_kind_of(kinds, by_kind(channel_words(job.info).get("times")))
    if kind is None:
        return "", ()
    steps = spans.filter(pc.equal(spans["kind"], pa.scalar(kind, pa.uint16())))
    threads = steps.group_by("thread").aggregate([("total_ns", "sum")]).sort_by([("total_ns_sum", "descending")])
    steps = steps.filter(pc.equal(steps["thread"], threads["thread"][0])).sort_by("start_ns")
    rows = list(row_tuples(steps.slice(max(0, steps.num_rows - TIMED_ROWS_MAX)), *_TIMED_COLUMNS))
    return layout.SPAN_NAMES[kind], tuple(TimedSteps._make((*row[:4], not row[4] & SPECIAL, row[5])) for row in rows)


def _first_calls(spans: pa.Table) -> tuple[float, ...]:
    """Return the relative time of each function's first call, from 0 to 1.

    0 is the start of the job's first span, 1 the start of its last span.
    """
    calls = spans.filter(pc.equal(spans["kind"], pa.scalar(layout.FUNCTION, pa.uint16())))
    first_starts: list[Any] = calls.group_by("key").aggregate([("start_ns", "min")])["start_ns_min"].to_pylist()
    if not first_starts:
        return ()
    begin_ns, end_ns = pc.min(spans["start_ns"]).as_py(), pc.max(spans["start_ns"]).as_py()
    return tuple((start_ns - begin_ns) / max(1, end_ns - begin_ns) for start_ns in first_starts)


def _latest_traces(job: JobReader, nodes: Sequence[Node], steps: Mapping[int, Sequence[int]]) -> tuple[StepTrace, ...]:
    """Return the latest traces of the last SAMPLED_STEPS traced steps.

    They have at most _EXECUTIONS_MAX executions in total, unless the latest trace alone has more.
    """
    numbers = [trace for step in sorted(steps)[-SAMPLED_STEPS:] for trace in steps[step]]
    if not numbers:
        return ()
    table = job.table("traces", _TRACE_COLUMNS)
    sampled = table.filter(pc.is_in(table["trace"], value_set=pa.array(numbers, pa.uint32()))).select(_TRACE_COLUMNS)
    rows_left = _EXECUTIONS_MAX
    selected: dict[int, tuple[int, int]] = {}
    for trace, step, duration_ns, rows in sorted(row_tuples(sampled), reverse=True):
        rows_left -= rows
        if rows_left < 0 and selected:
            break
        selected[trace] = (step, duration_ns)
    executions = _executions(job, nodes, selected)
    return tuple(StepTrace(*selected[trace], tuple(executions[trace])) for trace in reversed(selected))


def _executions(job: JobReader, nodes: Sequence[Node], traces: Mapping[int, Any]) -> dict[int, list[OpExecution]]:
    names = job.table("names")
    node_names, devices, labels = (
        interned_texts(names, NODE),
        interned_texts(names, DEVICE),
        interned_texts(names, LABEL),
    )
    ops = {node.name: node.op for node in nodes}
    executions: dict[int, list[OpExecution]] = {trace: [] for trace in traces}
    for trace, number, device, label, thread, start_ns, end_ns in job.timeline(traces):
        name = node_names[number]
        op = ops.get(name) or labels.get(label, "")
        executions[trace].append(OpExecution(name, op, devices[device].lower(), thread, start_ns, end_ns))
    return executions


def _step_memory(job: JobReader, steps: Mapping[int, Sequence[int]]) -> tuple[StepMemory, ...]:
    """Return the residual and the peak memory of each traced step, sorted by step number."""
    step_of_trace = {trace: step for step, traces in steps.items() for trace in traces}
    memory = (
        StepMemory(step_of_trace[trace], residual, in_use)
        for trace, residual, in_use in job.memory_left()
        if trace in step_of_trace
    )
    return tuple(sorted(memory))


def _new_nodes(job: JobReader) -> tuple[NewNodes, ...]:
    node_counts = job.new_nodes()
    traces = job.table("traces", ["trace", "kind", "key"]).select(["trace", "kind", "key"])
    return tuple(NewNodes((kind, key), node_counts.get(trace, 0)) for trace, kind, key in sorted(row_tuples(traces)))


def _identical_graphs(job: JobReader, nodes: Sequence[Node]) -> tuple[IdenticalGraphs, ...]:
    """Return the sets of identical graphs.

    Only the set with the most nodes per graph gets the line that created it, since only that set is
    reported.
    """
    rows = job.identical_graphs()
    largest = max(rows, key=lambda row: row[1], default=None)
    return tuple(
        IdenticalGraphs._make((*row[:3], _creating_line(job, nodes, row[3]) if row is largest else "")) for row in rows
    )


def _creating_line(job: JobReader, nodes: Sequence[Node], graph: int) -> str:
    """Return the user's line that created most nodes of a graph, '' if unknown."""
    names = job.graph_names(graph)
    locations = Counter(
        location for node in nodes if node.name in names and (location := own_location(node.facts.stack))
    )
    return locations.most_common(1)[0][0] if locations else ""
