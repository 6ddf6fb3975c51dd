"""Reads the evidence for checkers from a store."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from ..advice.evidence import Evidence, IdenticalGraphs, NewNodes, OpExecution, StepMemory, StepTrace, TimedSteps
from ..store.columns import pc, row_tuples
from ..store.devices import is_canonical
from ..store.protocols import JobReader
from ..store.schema import DEVICE, LABEL, NODE
from ..summaries.jobs import channel_words
from ..summaries.kinds import by_kind, main_kind_of
from ..summaries.steps import UNUSUAL
from ..tfviews.entries import Entry
from ..tfviews.nodes import Node, interned_texts
from ..tfviews.own_files import own_location
from ..tfviews.parity import DEFAULT, Parity
from .profile import profile
from .required_facts import GRAPH, STACKS
from .step_entries import by_step, step_traces
from .step_times import step_times
from .surroundings import host_samples, levels, load, steady

#: Number of latest traced steps whose executions are read one by one; maximum number of executions.
SAMPLE: Final = 8
_ROWS: Final = 400_000
#: Number of latest rows of timed steps that are read.
TIMED: Final = 100_000

_TIMED: Final = ["ordinal", "count", "start_ns", "total_ns", "flags", "key"]
_TRACED: Final = ["trace", "step", "duration_ns", "rows"]


def gather(job: JobReader, parity: Parity = DEFAULT) -> Evidence:
    """Read the evidence of a job that the checkers of ``parity`` need."""
    found = profile(job, needs=(GRAPH, STACKS), parity=parity)
    nodes = tuple(found.nodes) if found else ()
    steps = step_traces(job, separate_functions=parity.separates_kinds)
    last = _last(job, nodes, steps, separate_functions=parity.separates_kinds)
    if not parity.has_own_advice:
        return Evidence(nodes=nodes, has_steps=bool(steps), last_entries=last, parity=parity)
    spans, samples = job.table("spans"), job.table("samples")
    kind, timed = _timed(job, spans)
    during = steady(spans)
    return Evidence(
        nodes=nodes,
        has_steps=bool(steps),
        last_entries=last,
        times=step_times(found).nodes if found and found.traces else {},
        parity=parity,
        step_kind=kind,
        timed_steps=timed,
        step_traces=_traced(job, nodes, steps),
        step_memory=_kept(job, steps),
        memory_samples=levels(samples, during) if during else (),
        load=load(samples, host_samples(job, samples)),
        new_nodes=_new(job),
        graphs=_graphs(job, nodes),
        first_calls=_first_calls(spans),
    )


def _last(
    job: JobReader, nodes: Sequence[Node], steps: Mapping[int, Sequence[int]], *, separate_functions: bool
) -> dict[str, tuple[int, Entry]]:
    """Return for each node on a GPU its last step with an entry, and the entry."""
    own = {node.name: node.devices[0] for node in nodes if node.devices and "gpu" in node.devices[0]}
    if not own:
        return {}
    names = job.table("names")
    known, devices = (
        interned_texts(names, NODE),
        {number: text.lower() for number, text in interned_texts(names, DEVICE).items()},
    )
    canonical = {number for number, text in devices.items() if is_canonical(text.encode("utf-8", "surrogateescape"))}
    step_of = {trace: step for step, traces in steps.items() for trace in traces}
    last: dict[str, int] = {}
    for number, device, trace in job.last_traces():
        name = known.get(number)  # a running job may have more names than when they were read
        if name in own and trace in step_of and (device not in canonical or devices[device] == own[name]):
            last[name] = max(last.get(name, 0), step_of[trace])
    return {
        name: (step, entry)
        for step, found in by_step(job, set(last.values()), separate_functions=separate_functions)
        for name, entry in found.items()
        if last.get(name) == step
    }


def _timed(job: JobReader, spans: pa.Table) -> tuple[str, tuple[TimedSteps, ...]]:
    """Return the main kind of step of the job, and its latest steps on one thread.

    It is the thread with the most time in steps of this kind. Without timed steps, the kind is ''.
    """
    there: dict[int, Any] = dict.fromkeys(pc.unique(spans["kind"]).to_pylist())
    kind = main_kind_of(there, by_kind(channel_words(job.info).get("times")))
    if kind is None:
        return "", ()
    mine = spans.filter(pc.equal(spans["kind"], pa.scalar(kind, pa.uint16())))
    threads = mine.group_by("thread").aggregate([("total_ns", "sum")]).sort_by([("total_ns_sum", "descending")])
    mine = mine.filter(pc.equal(mine["thread"], threads["thread"][0])).sort_by("start_ns")
    rows = list(row_tuples(mine.slice(max(0, mine.num_rows - TIMED)), *_TIMED))
    return layout.SPAN_NAMES[kind], tuple(TimedSteps._make((*row[:4], not row[4] & UNUSUAL, row[5])) for row in rows)


def _first_calls(spans: pa.Table) -> tuple[float, ...]:
    """Return the time of each function's first call, between 0 and 1.

    0 is the start of the job's first span, 1 the start of its last span.
    """
    calls = spans.filter(pc.equal(spans["kind"], pa.scalar(layout.FUNCTION, pa.uint16())))
    first: list[Any] = calls.group_by("key").aggregate([("start_ns", "min")])["start_ns_min"].to_pylist()
    if not first:
        return ()
    began, ended = pc.min(spans["start_ns"]).as_py(), pc.max(spans["start_ns"]).as_py()
    return tuple((at - began) / max(1, ended - began) for at in first)


def _traced(job: JobReader, nodes: Sequence[Node], steps: Mapping[int, Sequence[int]]) -> tuple[StepTrace, ...]:
    """Return the latest traced steps with their executions; fewer steps if they have many."""
    numbers = [trace for step in sorted(steps)[-SAMPLE:] for trace in steps[step]]
    if not numbers:
        return ()
    table = job.table("traces", _TRACED)
    sampled = table.filter(pc.is_in(table["trace"], value_set=pa.array(numbers, pa.uint32()))).select(_TRACED)
    room = _ROWS
    taken: dict[int, tuple[int, int]] = {}
    for trace, step, duration_ns, rows in sorted(row_tuples(sampled), reverse=True):
        room -= rows
        if room < 0 and taken:
            break
        taken[trace] = (step, duration_ns)
    executions = _executions(job, nodes, taken)
    return tuple(StepTrace(*taken[trace], tuple(executions[trace])) for trace in reversed(taken))


def _executions(job: JobReader, nodes: Sequence[Node], traces: Mapping[int, Any]) -> dict[int, list[OpExecution]]:
    names = job.table("names")
    known, devices, labels = interned_texts(names, NODE), interned_texts(names, DEVICE), interned_texts(names, LABEL)
    ops = {node.name: node.op for node in nodes}
    found: dict[int, list[OpExecution]] = {trace: [] for trace in traces}
    for trace, number, device, label, thread, start_ns, end_ns in job.timeline(traces):
        name = known[number]
        op = ops.get(name) or labels.get(label, "")
        found[trace].append(OpExecution(name, op, devices[device].lower(), thread, start_ns, end_ns))
    return found


def _kept(job: JobReader, steps: Mapping[int, Sequence[int]]) -> tuple[StepMemory, ...]:
    """Return the memory after each traced step, sorted by number of the step."""
    step_of = {trace: step for step, traces in steps.items() for trace in traces}
    found = (
        StepMemory(step_of[trace], residual, in_use)
        for trace, residual, in_use in job.memory_left()
        if trace in step_of
    )
    return tuple(sorted(found))


def _new(job: JobReader) -> tuple[NewNodes, ...]:
    first = job.new_nodes()
    traces = job.table("traces", ["trace", "kind", "key"]).select(["trace", "kind", "key"])
    return tuple(NewNodes((kind, key), first.get(trace, 0)) for trace, kind, key in sorted(row_tuples(traces)))


def _graphs(job: JobReader, nodes: Sequence[Node]) -> tuple[IdenticalGraphs, ...]:
    """Return the sets of identical graphs.

    Only the set with the most nodes per graph gets a line, since only that set is reported.
    """
    rows = job.identical_graphs()
    largest = max(rows, key=lambda row: row[1], default=None)
    return tuple(IdenticalGraphs._make((*row[:3], _line(job, nodes, row[3]) if row is largest else "")) for row in rows)


def _line(job: JobReader, nodes: Sequence[Node], graph: int) -> str:
    """Return the user's line that created most nodes of a graph."""
    names = job.graph_names(graph)
    locations = Counter(
        location for node in nodes if node.name in names and (location := own_location(node.facts.stack))
    )
    return locations.most_common(1)[0][0] if locations else ""
