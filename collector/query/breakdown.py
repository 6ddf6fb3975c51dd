"""Reads what is recorded about the steps of a job, and breaks them down into parts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout, span_kinds
from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name, span_kind
from ..summaries.op_classes import ITERATOR_DEVICE, PIPELINE_DEVICE, phases
from ..summaries.part_times import break_down
from ..summaries.parts import Breakdown, Recording
from ..summaries.step_records import StepTrace, TimedSteps
from ..summaries.steps import rows_of_kinds, sums_by_kind
from ..tfviews.nodes import Node
from .facts import GRAPH, STACKS
from .job_selection import Selection
from .job_usage import thread_use, use_between
from .kind_selection import COLUMNS, includes, no_such_kind, traces_by_kind, traces_of_job
from .profile import TRACE_COLUMNS, no_step_since, no_such_step, profile
from .recorded_steps import (
    StepsOfKind,
    activities_of,
    latest_traces,
    main_kind,
    marked_parts,
    no_such_timed_step,
    pipeline_functions,
    steps_of_kind,
)
from .step_entries import step_traces

#: Steps run op by op if at least this share of their executions is outside of graphs.
_EAGER_SHARE: Final = 0.5


class JobBreakdown(NamedTuple):
    """The breakdowns of a job's steps, one for each kind; the main kind comes first."""

    job: JobReader
    breakdowns: tuple[Breakdown, ...]


class TracedSteps(NamedTuple):
    """Traced steps of ``kinds`` that have been read, with their traces by step.

    ``nodes`` have sums over all of these steps. ``latest`` are the latest of these steps.
    """

    kinds: Sequence[int]
    by_step: Mapping[int, Sequence[int]]
    nodes: Sequence[Node]
    latest: tuple[StepTrace, ...]


def breakdowns(
    job: JobReader, kinds: Sequence[int] | None = None, steps: tuple[int, int] | None = None, since_ns: int = 0
) -> JobBreakdown:
    """Return the parts of the steps of ``kinds``, None for the main kind.

    ``steps``: the first and the last step that count; short steps that are stored together count
    together. ``since_ns``: only steps that began then or later (real time), 0 for all. UsageError
    ``no-such-kind`` and ``no-such-step`` as for views.
    """
    return job.on_one_snapshot(lambda snapshot: _on_snapshot(snapshot, kinds, steps, since_ns))


def _on_snapshot(
    job: JobReader, kinds: Sequence[int] | None, steps: tuple[int, int] | None, since_ns: int
) -> JobBreakdown:
    spans = job.table("spans")
    selected = main_kinds(job, spans) if kinds is None else _present(spans, kinds) or tuple(kinds)
    results = [_of_kind(job, spans, kind, steps, since_ns) for kind in selected]
    found = tuple(result for result in results if result is not None)
    if kinds is not None and not found:
        _check_kinds(job, spans, kinds)
    if (steps or since_ns) and not found:
        step_spans = rows_of_kinds(spans, span_kinds.steps())
        if step_spans.num_rows:
            raise no_such_timed_step(step_spans, steps, since_ns)
        traces = job.table("traces", TRACE_COLUMNS)
        if traces.num_rows:  # those of an imported job
            raise no_such_step([(job, traces)], selected, *steps) if steps else no_step_since([traces], since_ns)
    return JobBreakdown(job, found)


def _check_kinds(job: JobReader, spans: pa.Table, kinds: Sequence[int]) -> None:
    """Raise UsageError ``no-such-kind`` if steps were timed, but none of ``kinds``."""
    counts = sums_by_kind(spans, "count")
    if counts and not any(includes(kinds, kind) for kind in counts):
        raise no_such_kind(kinds, "timed", counts, functions_of(job.info))


def main_breakdown(job: JobReader, spans: pa.Table, known: TracedSteps | None = None) -> Breakdown | None:
    """Return the parts of the steps of the main kind; None if none was timed.

    If ``known`` has the needed steps, they are not read again.
    """
    return next((_of_kind(job, spans, kind, None, known=known) for kind in main_kinds(job, spans)), None)


def breakdown_of_steps(job: JobReader, kind: int, steps: tuple[int, int]) -> Breakdown | None:
    """Return the parts of the steps of ``kind`` from the first to the last of ``steps``."""
    return _of_kind(job, job.table("spans"), kind, steps)


def main_kinds(job: JobReader, spans: pa.Table) -> tuple[int, ...]:
    """Return the main kind of the timed steps.

    Among functions, it is the one that the views show. Without timed steps, it is the kind that the
    views show.
    """
    kind = main_kind(job, spans)
    is_traced = bool(job.table("traces", ["trace"]).num_rows)
    if kind is None or (kind == layout.FUNCTION and is_traced):
        traced_kinds = traces_of_job(job, COLUMNS)[1] if is_traced else ()
        if kind is None or span_kind(max(traced_kinds)) == kind:
            return tuple(traced_kinds)
    return _present(spans, (kind,))[:1]


def _present(spans: pa.Table, kinds: Sequence[int]) -> tuple[int, ...]:
    """Return those of ``kinds`` that were timed.

    Each function is a kind of its own; the longest time comes first.
    """
    timed = sums_by_kind(spans, "total_ns")
    return tuple(dict.fromkeys(each for kind in kinds for each in timed if includes((kind,), each)))


def _of_kind(
    job: JobReader,
    spans: pa.Table,
    kind: int,
    steps: tuple[int, int] | None,
    since_ns: int = 0,
    known: TracedSteps | None = None,
) -> Breakdown | None:
    names = functions_of(job.info)
    recorded = steps_of_kind(spans, kind, names) if rows_of_kinds(spans, (kind,)).num_rows else _traced_steps(job, kind)
    timed = tuple(
        group
        for group in recorded.steps
        if group.measured_start.ns >= since_ns
        and (steps is None or (steps[0] <= group.last and group.ordinal <= steps[1]))
    )
    if not timed:
        return None
    if since_ns:
        steps = timed[0].ordinal, timed[-1].last
    nodes, traces = _traces(job, kind, steps, known)
    period = timed[0].measured_start.ns, timed[-1].start_ns + timed[-1].total_ns
    used = use_between(job.table("samples"), period)
    return break_down(
        Recording(
            kind=kind_name(kind, names),
            steps=timed,
            others=recorded.others,
            activities=activities_of(spans, recorded.thread, names),
            functions=pipeline_functions(spans, recorded.thread, names, period),
            marked=marked_parts(spans, recorded.thread, names, period),
            traces=traces,
            phases=phases(nodes),
            use=thread_use(job, recorded.thread, period),
            cores=used.cores if used is not None else 0.0,
            is_eager=span_kind(kind) == layout.EAGER or _is_eager(traces, nodes),
            epochs=_starts_of_epochs(spans) if span_kind(kind) == layout.BATCH else (),
        )
    )


def _starts_of_epochs(spans: pa.Table) -> list[int]:
    starts: list[Any] = rows_of_kinds(spans, (layout.EPOCH,))["start_ns"].to_pylist()
    return starts


def _traced_steps(job: JobReader, kind: int) -> StepsOfKind:
    """Return the traced steps of a job without spans, as imported ones are, if they have times."""
    traces = rows_of_kinds(job.table("traces"), (kind,)).sort_by("start_ns")
    rows = row_tuples(traces, "step", "start_ns", "duration_ns", "key")
    steps = tuple(
        TimedSteps(step, 1, start_ns, duration_ns, is_normal=False, key=key)
        for step, start_ns, duration_ns, key in rows
        if duration_ns
    )
    return StepsOfKind(steps, (), 0)


def _traces(
    job: JobReader, kind: int, steps: tuple[int, int] | None, known: TracedSteps | None
) -> tuple[Sequence[Node], tuple[StepTrace, ...]]:
    """Return the nodes and the latest traces of the traced steps of ``kind``."""
    if kind not in traces_by_kind([job.table("traces", COLUMNS)]):
        return (), ()
    by_step = {
        step: traces
        for step, traces in step_traces(job, (kind,)).items()
        if steps is None or steps[0] <= step <= steps[1]
    }
    if not by_step:
        return (), ()
    if known is not None and tuple(known.kinds) == (kind,) and known.by_step == by_step:
        return known.nodes, known.latest
    selection = Selection((job,), (min(by_step), max(by_step)), kinds=(kind,))
    job_profile = profile(selection, required_facts=(GRAPH, STACKS), averaged=False)
    nodes = job_profile.nodes if job_profile else ()
    return nodes, latest_traces(job, nodes, by_step)


def _is_eager(traces: Sequence[StepTrace], nodes: Sequence[Node]) -> bool:
    """Return whether most executions are those of eager ops.

    The name of an eager op is its op type. A node of a graph may have such a name, too, but it runs
    once in a step, unless it is in a loop.
    """
    graph_names = {node.name for node in nodes if node.in_graph}
    eager = total = 0
    for trace in traces:
        runs = Counter(each.node for each in trace.executions if each.device not in (ITERATOR_DEVICE, PIPELINE_DEVICE))
        ops = {each.node for each in trace.executions if each.node == each.op and "/" not in each.op}
        eager += sum(runs[name] for name in ops if name not in graph_names or runs[name] > 1)
        total += runs.total()
    return eager > _EAGER_SHARE * total
