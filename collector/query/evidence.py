"""Reads the evidence for checkers from a store."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from ...formats import activities, layout
from ..advice.cpu_use import cpu_use
from ..advice.evidence import Evidence, IdenticalGraphs, NewNodes, StepMemory, StepShift
from ..advice.host_sentence import host_sentence, use_sentence
from ..advice.main_call import steps_of_main_call
from ..store import sql_queries
from ..store.columns import pc, row_tuples
from ..store.devices import INPUT_DEVICES, can_be_canonical
from ..store.protocols import JobReader
from ..store.schema import DEVICE, NODE
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name
from ..summaries.op_classes import PIPELINE_DEVICE
from ..summaries.step_records import StepTrace, ThreadUse, TimedSteps
from ..summaries.steps import rows_of_kinds
from ..tfviews.entries import Entry
from ..tfviews.nodes import Node, interned_bytes, interned_texts
from ..tfviews.parity import DEFAULT, Parity
from ..tfviews.places import Places
from .breakdown import TracedSteps, main_breakdown
from .facts import GRAPH, STACKS
from .job_selection import Selection
from .job_usage import (
    cpu_loads,
    host_samples,
    memory_levels,
    python_threads,
    steady_period,
    thread_use,
    use_between,
)
from .node_times import node_times
from .profile import profile
from .recorded_steps import latest_traces, timed_steps
from .step_entries import entries_by_step, step_traces
from .step_shift import shifts

_MAPPED: Final = "Dataset_map_"


def gather(job: JobReader, parity: Parity = DEFAULT) -> Evidence:
    """Read the evidence of a job that the checkers of ``parity`` need."""
    averaged = not parity.has_unit_times
    job_profile = profile(Selection((job,), parity=parity), required_facts=(GRAPH, STACKS), averaged=averaged)
    nodes = tuple(job_profile.nodes) if job_profile else ()
    steps = step_traces(job, separate_functions=parity.separates_kinds)
    last_entries = _last_entries(job, nodes, steps, separate_functions=parity.separates_kinds)
    if not parity.has_own_advice:
        return Evidence(nodes=nodes, has_steps=bool(steps), last_entries=last_entries, parity=parity)
    spans, samples = job.table("spans"), job.table("samples")
    host = host_samples(job, samples)
    step_kind, steps_of_kind = timed_steps(job, spans)
    period = steady_period(spans)
    shift, longer_pauses = shifts(job, step_kind, steps_of_kind)
    latest = latest_traces(job, nodes, steps)
    known = None
    if job_profile is not None and parity == DEFAULT:
        known = TracedSteps(job_profile.kind_numbers, steps, nodes, latest)
    return Evidence(
        nodes=nodes,
        has_steps=bool(steps),
        last_entries=last_entries,
        traced_steps=max(1, job_profile.trace_count) if job_profile else 1,
        traced_kinds=job_profile.kinds if job_profile else {},
        times=node_times(job_profile).by_node if job_profile and job_profile.trace_count else {},
        parity=parity,
        step_kind=step_kind,
        epochs=rows_of_kinds(spans, (layout.EPOCH,)).num_rows,
        predict_calls=rows_of_kinds(spans, (layout.PREDICT,)).num_rows,
        thread_use=_thread_use(job, period),
        python_threads=python_threads(job, period) if period else (),
        breakdown=main_breakdown(job, spans, known),
        timed_steps=steps_of_kind,
        shift=shift,
        pause_shift=longer_pauses,
        shift_use=_use_around(job, period, shift or longer_pauses),
        map_functions=_map_functions(job),
        use=use_between(samples, period) if period else None,
        step_traces=tuple(_part_of(step, in_pipeline=False) for step in latest),
        pipeline_traces=tuple(_part_of(step, in_pipeline=True) for step in latest),
        step_memory=_step_memory(job, steps),
        memory_samples=memory_levels(samples, period) if period else (),
        load=cpu_loads(samples, host.rows),
        host_damage=host.damage,
        new_nodes=_new_nodes(job),
        graphs=_identical_graphs(job, nodes),
        first_calls=_first_calls(spans, steps_of_kind),
        other_run_keys=_other_run_keys(spans, step_kind),
        longest_ns=_longest_activities(spans, steps_of_kind),
    )


def _thread_use(job: JobReader, period: tuple[int, int] | None) -> ThreadUse | None:
    """Return what the main thread did in the steady part of the job, None if it is unknown."""
    return thread_use(job, job.info.pid, period) if period and job.info.pid else None


def _map_functions(job: JobReader) -> tuple[str, ...]:
    """Return the names of the functions that `map` of the input pipeline traced.

    TensorFlow names their graphs `Dataset_map_NAME`.
    """
    return tuple(
        name.removeprefix(_MAPPED)
        for key, name in functions_of(job.info).items()
        if activities.number_of(key) == activities.TRACING and name.startswith(_MAPPED)
    )


def _use_around(
    job: JobReader, period: tuple[int, int] | None, shift: StepShift | None
) -> tuple[ThreadUse | None, ThreadUse | None]:
    """Return what the main thread did before ``shift``, and what it did since."""
    if period is None or shift is None:
        return None, None
    return _thread_use(job, (period[0], shift.start_ns)), _thread_use(job, (shift.start_ns, period[1]))


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
    for number, device, trace in job.with_sql(sql_queries.last_traces):
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


def _first_calls(spans: pa.Table, steps: Sequence[TimedSteps]) -> tuple[float, ...]:
    """Return the relative time of each function's first call.

    0 is the start of the job's first span, 1 the end of the last step of the main call.
    """
    calls = rows_of_kinds(spans, (layout.FUNCTION,))
    first_starts: list[Any] = calls.group_by("key").aggregate([("start_ns", "min")])["start_ns_min"].to_pylist()
    if not first_starts or not steps:
        return ()
    begin_ns, last = pc.min(spans["start_ns"]).as_py(), steps_of_main_call(steps)[-1]
    end_ns = last.start_ns + last.total_ns
    return tuple((start_ns - begin_ns) / max(1, end_ns - begin_ns) for start_ns in first_starts)


def _other_run_keys(spans: pa.Table, step_kind: str) -> tuple[int, ...]:
    """Return the keys of the session runs of other kinds than the main one, in order of time."""
    kinds = tuple(kind for kind in layout.RUN_KINDS if kind_name(kind) != step_kind)
    return tuple(key for _, key in sorted(row_tuples(rows_of_kinds(spans, kinds), "start_ns", "key")))


def _longest_activities(spans: pa.Table, steps: Sequence[TimedSteps]) -> dict[str, int]:
    """Return the duration of the longest activity of each category after the first of ``steps``."""
    rows = rows_of_kinds(spans, (layout.ACTIVITY,))
    begin_ns = steps[0].start_ns + steps[0].total_ns if steps else 0
    rows = rows.filter(pc.greater_equal(rows["start_ns"], pa.scalar(begin_ns, pa.int64())))
    by_duration = rows.group_by("key").aggregate([("max_ns", "max")]).sort_by("max_ns_max")
    return {activities.category_of(key): ns for key, ns in row_tuples(by_duration, "key", "max_ns_max")}


def _step_memory(job: JobReader, steps: Mapping[int, Sequence[int]]) -> tuple[StepMemory, ...]:
    """Return the residual and the peak memory of each traced step, sorted by step number."""
    step_of_trace = {trace: step for step, traces in steps.items() for trace in traces}
    memory = (
        StepMemory(step_of_trace[trace], residual, in_use)
        for trace, residual, in_use in job.with_sql(sql_queries.memory_left)
        if trace in step_of_trace
    )
    return tuple(sorted(memory))


def _part_of(step: StepTrace, *, in_pipeline: bool) -> StepTrace:
    """Return a traced step with the ops of the input pipeline's functions, or with all others."""
    return step._replace(
        executions=tuple(each for each in step.executions if (each.device == PIPELINE_DEVICE) == in_pipeline)
    )


def _new_nodes(job: JobReader) -> tuple[NewNodes, ...]:
    """Return the numbers of new nodes of the graph: tf.data makes new iterators in any job."""
    devices = interned_bytes(job.table("names"), DEVICE)
    left_out = [number for number, name in devices.items() if name in INPUT_DEVICES]
    node_counts = job.with_sql(partial(sql_queries.new_nodes, left_out=left_out))
    traces = job.table("traces", ["trace", "kind", "key"]).select(["trace", "kind", "key"])
    return tuple(NewNodes((kind, key), node_counts.get(trace, 0)) for trace, kind, key in sorted(row_tuples(traces)))


def _identical_graphs(job: JobReader, nodes: Sequence[Node]) -> tuple[IdenticalGraphs, ...]:
    """Return the sets of identical graphs.

    Only the set with the most nodes per graph gets the line that created it, because only that set
    is reported.
    """
    rows = job.with_sql(sql_queries.identical_graphs)
    largest = max(rows, key=lambda row: row[1], default=None)
    return tuple(
        IdenticalGraphs._make((*row[:3], _creating_line(job, nodes, row[3]) if row is largest else "")) for row in rows
    )


def _creating_line(job: JobReader, nodes: Sequence[Node], graph: int) -> str:
    """Return the user's line that created most nodes of a graph, '' if unknown."""
    names, places = job.with_sql(partial(sql_queries.graph_names, graph=graph)), Places(nodes)
    locations = Counter(location for node in nodes if node.name in names and (location := places.location(node)))
    return locations.most_common(1)[0][0] if locations else ""


def host_verdict(job: JobReader, since_ns: int = 0) -> str | None:
    """Return what other processes used while the job's steps ran, None if it is unknown.

    The figures are those of the advice. ``since_ns``: only from then on (real time). The time for
    which the job waited for a CPU is then left out, since it is only known for the whole job.
    """
    evidence = gather(job)
    if not since_ns:
        return host_sentence(evidence)
    load = tuple(interval for interval in evidence.load if interval.start_ns >= since_ns)
    return use_sentence(cpu_use(load, evidence.timed_steps))
