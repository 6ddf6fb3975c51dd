"""Reads the nodes of one or several jobs, over the selected traced steps, for views to fold."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...formats import layout, span_kinds
from ..errors import NoSuchStepError, UsageError
from ..flops.kernels import is_library_kernel, op_type, split_label
from ..numbers import date_and_time
from ..store.catalog import IMPORTED, MAY_CONTINUE
from ..store.devices import GPU, STREAMS
from ..store.protocols import JobReader
from ..store.schema import DEVICE, LABEL, NODE, NONE_ID
from ..summaries.kinds import kind_name, range_text
from ..summaries.op_classes import PIPELINE_DEVICE
from ..summaries.steps import rows_of_kinds
from ..tfviews.nodes import (
    Node,
    device_names,
    interned_texts,
    merge_jobs,
    nodes_from_rollup,
    stream_devices,
    with_counts,
    wrap_int64,
)
from ..tfviews.parity import Parity
from .facts import ALL_FACTS, FLOAT_OPS, GRAPH, NO_JOB_FACTS, SHAPES, STACKS, JobFacts, SelectedJob, with_stacks
from .job_selection import Selection
from .kind_selection import by_name, function_names_of, includes, resolve_kinds, traces_by_kind

#: Maximum number of steps that an error lists.
_STEPS_LISTED_MAX: Final = 20
#: The devices of a node that ran only in functions of the input pipeline, and the part of a
#: device's name that selects such nodes.
_PIPELINE: Final = (PIPELINE_DEVICE,)
_PIPELINE_PATTERN: Final = "tf.data"
TRACE_COLUMNS: Final = ("trace", "source", "kind", "step", "key", "accelerator", "start_ns", "duration_ns")


@dataclass(frozen=True, slots=True)
class Profile:
    """The nodes of one job, or of several, in name order with their statistics.

    ``trace_count``: number of traced steps that they cover. ``missing_stream``: in some step, a GPU
    ran ops, but the times of its kernels were not recorded. ``uncounted``: number of nodes whose
    operations could not be counted because a shape is unknown. ``kinds``: number of traced steps by
    the name of their kind; ``other_kinds``: the same for kinds that are not selected.
    ``job_traces``: the jobs, with the numbers of their selected traces. ``kind_numbers``: the kinds
    in ``kinds`` as numbers. ``omits_pipeline``: the nodes do not include the ops of the input
    pipeline's functions, which run beside the steps.
    """

    nodes: list[Node]
    trace_count: int
    missing_stream: bool = False
    uncounted: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    other_kinds: Mapping[str, int] = field(default_factory=dict)
    job_traces: tuple[tuple[JobReader, Sequence[int]], ...] = ()
    kind_numbers: tuple[int, ...] = ()
    omits_pipeline: bool = False


def profile(
    selection: Selection, step: int = -1, required_facts: Collection[str] = ALL_FACTS, *, averaged: bool = True
) -> Profile | None:
    """Return the nodes of jobs over the selected traced steps, None if nothing was traced yet.

    ``step`` is the number of one step, -1 for all. Nodes of several jobs are merged by name, and
    their numbers of traced steps add up. The device of ``selection`` is a part of a device's name,
    or a pattern with `*` and `?`; case is ignored. Only nodes that ran on a matching device are
    returned, with their times there. Functions of the input pipeline run beside the steps: their
    nodes are returned only if the device contains `tf.data`. ``averaged``: return averages over a
    node's traced steps instead of sums. If the parity has unit times, times are those of units: per
    step if averaged, else times the number of steps. ``required_facts``: the facts about nodes to
    read.

    Raises UsageError ``no-such-step``, ``no-such-kind``, ``no-such-device``.
    """
    device, parity = selection.device, selection.parity
    selected_jobs, trace_counts = _select_jobs(selection, step)
    if not selected_jobs:
        return None
    job_nodes = [_nodes_on_one_snapshot(selected, device, required_facts, parity) for selected in selected_jobs]
    nodes = job_nodes[0].nodes if len(job_nodes) == 1 else merge_jobs([each.nodes for each in job_nodes])
    if device is not None and not nodes:
        raise no_such_device(device, _device_names(selected_jobs))
    trace_count = sum(selected.trace_count for selected in selected_jobs)
    kind_counts = dict(sum((Counter(selected.kinds) for selected in selected_jobs), Counter[int]()))
    other_counts = {kind: number for kind, number in trace_counts.items() if kind not in kind_counts}
    function_names = function_names_of(selection.jobs)
    return Profile(
        nodes=with_counts(nodes, steps=max(1, trace_count), averaged=averaged, parity=parity),
        trace_count=trace_count,
        missing_stream=any(_misses_streams(selected, parity) for selected in selected_jobs),
        uncounted=sum(each.uncounted for each in job_nodes),
        kinds=by_name(kind_counts, function_names),
        other_kinds=by_name(other_counts, function_names),
        job_traces=tuple((selected.job, selected.trace_numbers) for selected in selected_jobs),
        kind_numbers=tuple(kind_counts),
        omits_pipeline=any(each.omits_pipeline for each in job_nodes),
    )


def jobs_of_other_kinds(selection: Selection) -> list[JobReader]:
    """Return the traced jobs that have no step in a profile of ``selection``; errors as for it."""
    selected = [selected.job for selected in _select_jobs(selection, -1)[0]]
    return [job for job in selection.jobs if job not in selected and job.table("traces", ["trace"]).num_rows]


# -- which traces --------------------------------------------------------------------------------


def _select_jobs(selection: Selection, step: int) -> tuple[list[SelectedJob], dict[int, int]]:
    """Return the jobs to read, and the number of all their traces of each kind.

    A job is read if it has a selected trace. If all steps are selected, imported jobs without
    traces are read, too: they consist of graphs.
    """
    steps, since_ns, separates_kinds = selection.steps, selection.since_ns, selection.parity.separates_kinds
    is_all = not separates_kinds and step < 0 and steps is None
    requested_kinds = span_kinds.steps() if selection.kinds is None and is_all else selection.kinds
    first, last = (step, step) if step >= 0 else steps or (None, None)
    all_jobs = [(job, job.table("traces", TRACE_COLUMNS)) for job in selection.jobs]
    traced_jobs = [(job, table) for job, table in all_jobs if table.num_rows or job.info.state == IMPORTED]
    kinds = resolve_kinds(traced_jobs, requested_kinds, separate_functions=separates_kinds)
    trace_counts = traces_by_kind(table for _, table in traced_jobs)
    if first is None or last is None:
        selections = ((job, table, traces_since(rows_of_kinds(table, kinds), since_ns)) for job, table in traced_jobs)
        selected_jobs = [
            _selected(job, table, rows) for job, table, rows in selections if rows.num_rows or not table.num_rows
        ]
        if since_ns and traced_jobs and not selected_jobs:
            raise no_step_since([rows_of_kinds(table, kinds) for _, table in traced_jobs], since_ns)
        return selected_jobs, trace_counts
    if steps is not None and not steps[0] <= first <= steps[1]:
        raise UsageError(f"step {step} is not one of the steps {range_text(*steps)}", slug="no-such-step")
    selected_jobs = [
        _selected(job, table, rows)
        for job, table in traced_jobs
        if (rows := _traces_of_steps(traces_since(table, since_ns), kinds, first, last)).num_rows
    ]
    if traced_jobs and not selected_jobs:
        raise no_such_step(traced_jobs, kinds, first, last)
    return selected_jobs, trace_counts


def _selected(job: JobReader, traces: pa.Table, rows: pa.Table) -> SelectedJob:
    """Return the job with ``rows`` of its traces selected. Sums over all of them are stored."""
    return SelectedJob(job, traces, None if rows.num_rows == traces.num_rows else _trace_numbers(rows))


def traces_since(traces: pa.Table, since_ns: int) -> pa.Table:
    """Return the traces that began at ``since_ns`` (real time) or later; all if it is 0."""
    return traces.filter(pc.greater_equal(traces["start_ns"], pa.scalar(since_ns, pa.int64()))) if since_ns else traces


def no_step_since(tables: Sequence[pa.Table], since_ns: int) -> UsageError:
    """Return the error that none of the traces in ``tables`` began at ``since_ns`` or later."""
    last_ns = max(pc.max(table["start_ns"]).as_py() or 0 for table in tables)
    text = f"no step was traced since {date_and_time(since_ns)}: the last one at {date_and_time(last_ns)}"
    return UsageError(text, slug="no-such-step")


def misses_streams(traces: pa.Table) -> bool:
    """Return whether some step has a GPU, but no stream, so that its kernels' times are missing.

    The TF profiler loses this fact when it reads a file.
    """
    accelerators: list[Any] = traces["accelerator"].to_pylist()
    return any(flags & GPU and not flags & STREAMS for flags in accelerators)


def _misses_streams(selected: SelectedJob, parity: Parity) -> bool:
    may_miss = parity.finds_missing_streams or not selected.job.info.has_input_slots
    return may_miss and misses_streams(selected.traces)


def _traces_of_steps(traces: pa.Table, kinds: Sequence[int], first: int, last: int) -> pa.Table:
    """Return the traces of the steps ``first`` to ``last`` of ``kinds``."""
    return _traces_within(rows_of_kinds(traces, kinds), first, last)


def _traces_within(traces: pa.Table, first: int, last: int) -> pa.Table:
    return traces.filter(
        pc.and_(
            pc.greater_equal(traces["step"], _step_scalar(first)), pc.less_equal(traces["step"], _step_scalar(last))
        )
    )


def _trace_numbers(traces: pa.Table) -> tuple[int, ...]:
    numbers: list[Any] = traces["trace"].to_pylist()
    return tuple(sorted(numbers))


def _step_scalar(number: int) -> Any:
    return pa.scalar(number, pa.uint64())


def no_such_step(
    jobs: Sequence[tuple[JobReader, pa.Table]], kinds: Sequence[int], first: int, last: int
) -> NoSuchStepError:
    """Return the error that no step of ``kinds`` from ``first`` to ``last`` was traced in ``jobs``.

    ``jobs``: the jobs with their traces.
    """
    names, tables = function_names_of(job for job, _ in jobs), [table for _, table in jobs]
    step_numbers: set[Any] = {step for traces in tables for step in rows_of_kinds(traces, kinds)["step"].to_pylist()}
    steps = sorted(step_numbers)
    listed = ", ".join(map(str, steps[:_STEPS_LISTED_MAX])) + (
        f" … {steps[-1]}" if len(steps) > _STEPS_LISTED_MAX else ""
    )
    what = f"step {first} was not traced" if first == last else f"no step of {range_text(first, last)} was traced"
    text = f"{what}: {f'traced are {listed}' if steps else 'there are no traced steps'}"
    trace_counts = traces_by_kind(tables)
    if not all(includes(kinds, kind) for kind in trace_counts):
        text += f" (of the kind {' or '.join(kind_name(kind, names) for kind in kinds)}"
        kinds_with_step = [
            kind_name(kind, names) for kind in traces_by_kind(_traces_within(table, first, last) for table in tables)
        ]
        text += f"; --kind {','.join(kinds_with_step)} has the step)" if kinds_with_step else ")"
    available = "".join(f"{step} " for step in steps)
    return NoSuchStepError(text, f"Options -step={range_text(first, last)} not found.\nAvailable steps: {available}")


# -- the nodes of one job ------------------------------------------------------------------------


class JobNodes(NamedTuple):
    """The nodes of one job.

    ``uncounted``: number of nodes whose operations could not be counted. ``omits_pipeline``: ops of
    functions of the input pipeline are left out.
    """

    nodes: list[Node]
    uncounted: int
    omits_pipeline: bool


def _nodes_on_one_snapshot(
    selected_job: SelectedJob, device: str | None, required_facts: Collection[str], parity: Parity
) -> JobNodes:
    return selected_job.job.on_one_snapshot(
        lambda job: nodes_of(replace(selected_job, job=job), device, required_facts, parity)
    )


def _without_later_traces(selected_job: SelectedJob) -> SelectedJob:
    """Return ``selected_job`` limited to the traces that were stored when it was selected."""
    job = selected_job.job
    if selected_job.numbers is not None or job.info.state not in MAY_CONTINUE:
        return selected_job
    has_more = job.table("traces", ("trace",)).num_rows != selected_job.traces.num_rows
    return replace(selected_job, numbers=tuple(selected_job.trace_numbers)) if has_more else selected_job


def nodes_of(
    selected_job: SelectedJob, device: str | None, required_facts: Collection[str], parity: Parity
) -> JobNodes:
    """Return the nodes of a job with their sums over its selected traces."""
    selected_job = _without_later_traces(selected_job)
    job = selected_job.job
    names = job.table("names")
    total = job.rollup()
    rollup = total if selected_job.numbers is None else job.rollup(selected_job.numbers)
    device_part = None if device is None else _device_part(rollup, names, device)
    facts = _job_facts(selected_job, names, rollup, required_facts, parity) if required_facts else None
    graph = job.table("graph_nodes", ["name", "op"])
    window_labels = _window_labels(job, names, selected_job.traces)
    recorded_types = {number: op_type(kernel) for number, kernel in window_labels.items()}
    nodes = nodes_from_rollup(
        rollup if device_part is None else device_part.rollup,
        names,
        graph,
        {**_labeled_op_types(names, graph), **recorded_types} if parity.labels_kernels else recorded_types,
        facts=facts.facts if facts else None,
        total=total,
        times=job.unit_times(rollup, selected_job.numbers) if parity.has_unit_times else None,
    )
    nodes = [_with_float_ops(node, facts) for node in nodes] if facts and facts.counts else nodes
    kernels = _kernels(names, window_labels) if parity.labels_kernels else {}
    nodes = [_with_kernel(node, kernels[node.name]) if node.name in kernels else node for node in nodes]
    nodes = (
        nodes
        if device_part is None
        else [_with_selected_devices(node, device_part) for node in nodes if node.name in device_part.nodes]
    )
    of_steps = nodes if _selects_pipeline(device) else [node for node in nodes if node.devices != _PIPELINE]
    return JobNodes(of_steps, facts.uncounted if facts else 0, len(of_steps) < len(nodes))


def _selects_pipeline(device: str | None) -> bool:
    return device is not None and _PIPELINE_PATTERN in device.lower()


def _job_facts(
    selected_job: SelectedJob, names: pa.Table, rollup: pa.Table, required_facts: Collection[str], parity: Parity
) -> JobFacts:
    job, facts = selected_job.job, NO_JOB_FACTS
    if {GRAPH, FLOAT_OPS, SHAPES} & set(required_facts):
        from .graph_facts import graph_facts  # noqa: PLC0415  # imports protobuf: a tenth of a command's start

        facts = graph_facts(selected_job, names, rollup, required_facts, parity)
    return replace(facts, facts=with_stacks(facts.facts, job, names, parity)) if STACKS in required_facts else facts


def _window_labels(job: JobReader, names: pa.Table, traces: pa.Table) -> dict[int, str]:
    """Return the op type, or kernel of a library, that a profiler session recorded, by node id."""
    if layout.XSPACE not in set(traces["source"].to_pylist()):
        return {}
    labels = interned_texts(names, LABEL)
    first_labels = job.window_labels(stream_devices(names))
    return {node: text for node, label in first_labels.items() if (text := labels.get(label))}


def _kernels(names: pa.Table, window_labels: Mapping[int, str]) -> dict[str, str]:
    """Return the kernels of nodes that ran as a kernel of a library, by name of the node.

    The nodes keep their op types.
    """
    labeled_kernels = ((label.node, label.kernel) for label in map(split_label, _labels(names, "_Mkl")) if label)
    nodes = interned_texts(names, NODE) if window_labels else {}
    pairs = chain(
        labeled_kernels, ((nodes[number], kernel) for number, kernel in window_labels.items() if number in nodes)
    )
    return {name: kernel for name, kernel in pairs if is_library_kernel(kernel)}


def _with_kernel(node: Node, kernel: str) -> Node:
    """Return ``node`` with the kernel among its types."""
    types = tuple(dict.fromkeys((*node.facts.types, kernel)))
    return node._replace(facts=replace(node.facts, types=types))


def _labels(names: pa.Table, substring: str) -> list[str]:
    """Return the timeline labels that contain ``substring``."""
    labels = names.filter(pc.equal(names["kind"], pa.scalar(LABEL, pa.uint16())))
    return list(interned_texts(labels.filter(pc.match_substring(labels["text"], substring)), LABEL).values())


def _labeled_op_types(names: pa.Table, graph: pa.Table) -> dict[int, str]:
    """Return the op types in timeline labels that differ from those of the graph, by node id.

    Such nodes are in no graph, or ran as another op: TensorFlow adds nodes, folds constants, and
    fuses a convolution into the Relu that follows it.
    """
    executed_ops = {label.node: op_type(label.kernel) for label in map(split_label, _labels(names, " = ")) if label}
    if not executed_ops:
        return {}
    graph_ops: dict[Any, Any] = dict(zip(graph["name"].to_pylist(), graph["op"].to_pylist(), strict=True))
    node_names = interned_texts(names, NODE).items()
    return {
        number: executed_ops[name]
        for number, name in node_names
        if name in executed_ops and executed_ops[name] != graph_ops.get(name)
    }


def _with_float_ops(node: Node, facts: JobFacts) -> Node:
    """Return ``node`` with the operations of all its executions.

    These are the sum over all steps if the executions differ. Otherwise they are the operations of
    one execution times the number of executions. A node without an entry counts as one execution.
    """
    count = facts.counts.get(node.name)
    if count is None:
        return node
    float_ops = (
        count.per_execution * (1 if node.entries is None else node.stats.runs) if count.total is None else count.total
    )
    return node._replace(stats=node.stats._replace(float_ops=wrap_int64(float_ops)))


# -- one device ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DevicePart:
    """The part of a rollup on matching devices.

    ``rollup`` has the rows of these devices, and the node rows of the nodes that ran there.
    ``nodes`` and ``devices`` are the names of these nodes and devices.
    """

    rollup: pa.Table
    nodes: frozenset[str]
    devices: frozenset[str]


def matching_devices(devices: Mapping[int, str], pattern: str) -> dict[int, str]:
    """Return the ``devices`` whose names, in lower case, match ``pattern``."""
    pattern = pattern.lower() if set("*?[") & set(pattern) else f"*{pattern.lower()}*"
    return {number: text for number, text in devices.items() if fnmatchcase(text, pattern)}


def _device_part(rollup: pa.Table, names: pa.Table, pattern: str) -> _DevicePart:
    """Return the part of ``rollup`` on devices that match ``pattern``."""
    devices = matching_devices(device_names(names), pattern)
    is_on_device = pc.is_in(rollup["device"], value_set=pa.array(devices, pa.uint32()))
    ids = pc.unique(rollup.filter(is_on_device)["node"])
    is_node_row = pc.and_(
        pc.equal(rollup["device"], pa.scalar(NONE_ID, pa.uint32())), pc.is_in(rollup["node"], value_set=ids)
    )
    node_names = interned_texts(names, NODE)
    nodes: list[Any] = ids.to_pylist()
    return _DevicePart(
        rollup.filter(pc.or_(is_on_device, is_node_row)),
        frozenset(node_names[number] for number in nodes),
        frozenset(devices.values()),
    )


def _with_selected_devices(node: Node, device_part: _DevicePart) -> Node:
    """Return ``node`` with the selected devices only."""
    return node._replace(devices=tuple(device for device in node.devices if device in device_part.devices))


def _device_names(selected_jobs: Iterable[SelectedJob]) -> set[str]:
    return {name for selected in selected_jobs for name in interned_texts(selected.job.table("names"), DEVICE).values()}


def no_such_device(pattern: str, names: Collection[str]) -> UsageError:
    """Return the error that no device in ``names`` matches ``pattern``."""
    return UsageError(
        f"nothing ran on a device like '{pattern}'; there are {' '.join(sorted(names))}", slug="no-such-device"
    )
