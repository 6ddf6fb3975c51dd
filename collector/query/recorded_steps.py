"""Reads what is recorded about steps: the timed ones, what ran beside them, and the traced ones."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import activities, layout, span_kinds
from ..errors import UsageError
from ..numbers import date_and_time
from ..store.columns import flat, pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import DEVICE, LABEL, NODE
from ..summaries.jobs import channel_words, functions_of
from ..summaries.kinds import (
    FunctionNames,
    by_kind,
    function_key,
    kind_name,
    main_kind_of,
    range_text,
    span_kind,
    step_kind_of,
)
from ..summaries.step_records import Activity, NamedSum, OpExecution, OtherSpan, StepTrace, TimedSteps
from ..summaries.steps import SPECIAL, by_time, rows_of_kinds
from ..tfviews.nodes import Node, interned_texts

#: Maximum number of latest rows of timed steps that are read.
TIMED_ROWS_MAX: Final = 100_000
#: Kind of step -> the kinds of spans that may enclose it.
_ENCLOSING: Final = {layout.TEST_BATCH: (layout.EVALUATE,), layout.PREDICT_BATCH: (layout.PREDICT,)}
#: Kind of Keras batches -> the kind of the session runs that are their inside.
_RUNS_WITHIN: Final = {layout.BATCH: layout.TRAIN, layout.TEST_BATCH: layout.RUN, layout.PREDICT_BATCH: layout.RUN}
_TIMED_COLUMNS: Final = ["ordinal", "count", "start_ns", "total_ns", "flags", "key", "others"]
_ACTIVITY_COLUMNS: Final = ("key", "parent", "flags", "count", "start_ns", "total_ns")
#: Maximum number of traced steps whose executions are read one by one; the latest steps are read.
SAMPLED_STEPS: Final = 8
#: Maximum number of these executions; the latest trace is read even if it has more.
_EXECUTIONS_MAX: Final = 400_000

_TRACE_COLUMNS: Final = ["trace", "kind", "step", "start_ns", "base_ns", "duration_ns", "rows"]
_OP_COLUMNS: Final = ["trace", "node", "device", "label", "thread", "start_ns", "op_start_ns", "op_end_ns"]


def main_kind(job: JobReader, spans: pa.Table) -> int | None:
    """Return the main kind of a job's timed steps, None without any."""
    kinds: dict[int, Any] = dict.fromkeys(pc.unique(spans["kind"]).to_pylist())
    return main_kind_of(kinds, by_kind(channel_words(job.info).get("times")))


def timed_steps(job: JobReader, spans: pa.Table) -> tuple[str, tuple[TimedSteps, ...]]:
    """Return the main kind of step of a job, and its timed steps; '' if none was timed."""
    kind = main_kind(job, spans)
    if kind is None:
        return "", ()
    return span_kinds.name_of(kind), steps_of_kind(spans, kind, functions_of(job.info)).steps


def no_such_timed_step(spans: pa.Table, steps: tuple[int, int] | None, since_ns: int) -> UsageError:
    """Return the error that no step in ``spans`` is one of ``steps`` since ``since_ns``."""
    what = f"no step {range_text(*steps)}" if steps else "no step"
    since = f" began since {date_and_time(since_ns)}" if since_ns else ""
    last = by_time(spans).slice(spans.num_rows - 1).to_pylist()[0]
    number = last["ordinal"] + last["count"] - 1
    text = f"{what}{since}: the last one is {span_kinds.name_of(last['kind'])} {number:,}"
    return UsageError(f"{text}, of {date_and_time(last['start_ns'])}", slug="no-such-step")


class StepsOfKind(NamedTuple):
    """The latest steps of one kind on a thread, and all other spans since then, sorted by time.

    The thread is the one with the most time in these steps.
    """

    steps: tuple[TimedSteps, ...]
    others: tuple[OtherSpan, ...]
    thread: int


def steps_of_kind(spans: pa.Table, kind: int, names: FunctionNames) -> StepsOfKind:
    """Return the steps of ``kind`` in ``spans``, which have at least one.

    ``names``: the names of functions by key.
    """
    is_numbered = pc.equal(spans["kind"], pa.scalar(span_kind(kind), pa.uint16()))
    key = function_key(kind)
    is_of_kind = pc.and_(is_numbered, pc.equal(spans["key"], pa.scalar(key, pa.uint32()))) if key else is_numbered
    steps = spans.filter(is_of_kind)
    threads = steps.group_by("thread").aggregate([("total_ns", "sum")]).sort_by([("total_ns_sum", "descending")])
    thread = threads["thread"][0]
    steps = _latest(_with_others(spans.filter(is_numbered), key, thread))
    rows = row_tuples(steps, *_TIMED_COLUMNS)
    others = spans.filter(pc.and_(pc.invert(is_of_kind), pc.greater_equal(spans["start_ns"], steps["start_ns"][0])))
    return StepsOfKind(
        tuple(
            TimedSteps._make((*row[:4], not row[4] & SPECIAL, row[5], bool(row[4] & layout.FLAG_SAMPLED), row[6]))
            for row in rows
        ),
        tuple(_other_spans(others, thread, span_kind(kind), names)),
        thread.as_py(),
    )


def _with_others(steps: pa.Table, function: int, thread: Any) -> pa.Table:
    """Return the steps of a function (0 for all) and thread by time.

    Each has the number of other steps before it, since all functions and threads are numbered
    together.
    """
    ordered = by_time(steps)
    is_own = pc.equal(ordered["thread"], thread)
    if function:
        is_own = pc.and_(is_own, pc.equal(ordered["key"], pa.scalar(function, pa.uint32())))
    others = pc.cumulative_sum(flat(pc.if_else(is_own, 0, ordered["count"].cast(pa.int64()))))
    return ordered.append_column("others", others).filter(is_own)


def _latest(spans: pa.Table) -> pa.Table:
    """Return the latest TIMED_ROWS_MAX of ``spans``, which are sorted by time."""
    return spans.slice(max(0, spans.num_rows - TIMED_ROWS_MAX))


def _other_spans(spans: pa.Table, thread: Any, kind: int, names: FunctionNames) -> Iterator[OtherSpan]:
    """Yield the latest spans that can explain the pauses of ``thread`` between steps of ``kind``.

    Spans that enclose steps are left out, and so are session runs within Keras batches, runs of
    other threads that fill queues in the background, and activities, which are no steps.
    """
    enclosing = [layout.EPOCH, layout.FIT, layout.ACTIVITY, *_ENCLOSING.get(kind, ()), *span_kinds.others()]
    is_enclosing = pc.is_in(spans["kind"], value_set=pa.array(enclosing, pa.uint16()))
    is_input = pc.equal(spans["kind"], pa.scalar(layout.INPUT, pa.uint16()))
    batches = {kind, *pc.unique(spans["kind"]).to_pylist()} & _RUNS_WITHIN.keys() if kind in _RUNS_WITHIN else ()
    within = pa.array([_RUNS_WITHIN[each] for each in batches], pa.uint16())
    is_own = pc.equal(spans["thread"], thread)
    is_hidden = pc.if_else(is_own, pc.is_in(spans["kind"], value_set=within), is_input)
    others = _latest(spans.filter(pc.invert(pc.or_(is_enclosing, is_hidden))).sort_by("start_ns"))
    for other, key, start_ns, total_ns, steps in row_tuples(others, "kind", "key", "start_ns", "total_ns", "count"):
        yield OtherSpan(kind_name(step_kind_of(other, key), names), start_ns, start_ns + total_ns, steps)


def activities_of(spans: pa.Table, thread: int, names: FunctionNames) -> tuple[Activity, ...]:
    """Return the activities of ``thread``, sorted by time; ``names``: their names by key.

    If an activity is within another one, its time is subtracted from the outer one by a further
    entry with a negative time. Marks of the job's code within steps are left out, since their time
    is also the time of ops.
    """
    rows = rows_of_kinds(spans, (layout.ACTIVITY,))
    rows = rows.filter(pc.equal(rows["thread"], pa.scalar(thread, pa.uint32())))
    return tuple(sorted(_entries(rows, dict(names)), key=lambda activity: activity.start_ns))


def _entries(rows: pa.Table, names: dict[int, str]) -> Iterator[Activity]:
    for key, parent, flags, count, start_ns, total_ns in row_tuples(rows, *_ACTIVITY_COLUMNS):
        in_step = bool(flags & layout.FLAG_IN_STEP)
        times = start_ns, start_ns + total_ns
        if in_step and activities.number_of(key) in activities.MARKS:
            continue
        yield Activity(activities.category_of(key), activities.label_of(key, names), *times, total_ns, count, in_step)
        if parent and not (in_step and activities.number_of(parent) in activities.MARKS):
            category, name = activities.category_of(parent), activities.label_of(parent, names)
            yield Activity(category, name, *times, -total_ns, count, in_step)


def pipeline_functions(
    spans: pa.Table, thread: int, names: FunctionNames, period: tuple[int, int]
) -> tuple[NamedSum, ...]:
    """Return the user's functions that ops of other threads called within ``period``.

    These functions belong to an input pipeline. The one with the most time comes first.
    """
    rows = _activities_within(spans, period)
    is_other = pc.not_equal(rows["thread"], pa.scalar(thread, pa.uint32()))
    return _sums(rows.filter(is_other), activities.PYTHON_FUNCTION, names)


def marked_parts(spans: pa.Table, thread: int, names: FunctionNames, period: tuple[int, int]) -> tuple[NamedSum, ...]:
    """Return the parts of steps within ``period`` that the job's code marks on ``thread``.

    The longest one comes first.
    """
    rows = _activities_within(spans, period)
    is_own = pc.equal(rows["thread"], pa.scalar(thread, pa.uint32()))
    return _sums(rows.filter(is_own), activities.PART, names)


def _activities_within(spans: pa.Table, period: tuple[int, int]) -> Any:
    rows = rows_of_kinds(spans, (layout.ACTIVITY,))
    first, last = (pa.scalar(time_ns, pa.int64()) for time_ns in period)
    starts = rows["start_ns"]
    return rows.filter(pc.and_(pc.greater_equal(starts, first), pc.less(starts, last)))


def _sums(rows: Any, category: int, names: FunctionNames) -> tuple[NamedSum, ...]:
    """Return the sums of the activities of a category by name, the longest first."""
    times: Counter[int] = Counter()
    calls: Counter[int] = Counter()
    for key, count, total_ns in row_tuples(rows, "key", "count", "total_ns"):
        if activities.number_of(key) == category:
            times[key] += total_ns
            calls[key] += count
    known = dict(names)
    return tuple(
        NamedSum(activities.label_of(key, known), total_ns, calls[key]) for key, total_ns in times.most_common()
    )


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
