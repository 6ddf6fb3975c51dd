"""Compares runs of a program before and after a change."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any, Final

from ..errors import UsageError
from ..flops.executed import shapes_by_slot
from ..store.columns import row_tuples
from ..store.protocols import JobReader, StoreReader
from ..store.schema import NODE, NONE_ID, OUTPUTS
from ..store.selectors import baseline_runs, in_series
from ..summaries.comparison import (
    Change,
    Comparison,
    OpChange,
    OpSpread,
    Sides,
    compare_ops,
    compare_series,
    compare_step,
)
from ..summaries.compiled import COMPILED, compiled_nodes, program_name
from ..summaries.jobs import JobRow, channel_words, functions_of, job_row, main_steps
from ..summaries.op_classes import LAUNCHES
from ..summaries.part_times import median_step_ns
from ..summaries.parts import Breakdown, PartChange, part_changes
from ..summaries.step_records import TimedSteps
from ..summaries.step_times import median_step, step_times_of
from ..summaries.steps import at_measured_starts, normal_spans, rows_of_kinds
from ..summaries.top import TopOp, top_ops
from ..tfviews.nodes import Node, interned_bytes, interned_texts
from .breakdown import breakdown_of_steps, main_breakdown, main_kinds
from .compiled import parts_of
from .job_selection import ids_of
from .job_usage import cpu_loads, host_samples
from .node_times import Ranking, rank_ops

#: Facts of a run that are compared exactly, by name.
_FACTS: Final[dict[str, Callable[["Run"], object]]] = {
    "host": lambda run: run.row.host,
    "framework": lambda run: f"{run.row.framework} {run.row.framework_version}".strip(),
    "python": lambda run: run.job.info.identity.get("python"),
    "kind of step": lambda run: run.row.step_kind,
    "compiled by XLA": lambda run: ", ".join(sorted(run.programs)) or ("some ops" if run.compiled else "nothing"),
    "devices": lambda run: " ".join(sorted({op.device for op in run.ops})),
}
#: Op types that bring data into a graph.
_INPUTS: Final = frozenset({"IteratorGetNext", "Placeholder", "QueueDequeueManyV2", "QueueDequeueUpToV2", "_Arg"})
#: Figure of an op type -> (how it is shown, the share by which equal jobs may differ). Bytes vary
#: most: whether an op reuses the memory of its input depends on the timing.
_EXACT_FIGURES: Final = {"calls": ("{:.4g}", 0.005), "bytes": ("{:,.0f}", 0.1)}
#: The key of an op type on a device, whose name may have spaces before and within it.
_KEY: Final = re.compile("(.*?) ((?:[^ ]+:[0-9]+ )*[^ ]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its job, its op types by key, and the shapes of its nodes' outputs in one step.

    ``step_ns``: median time of its untraced steps, None if there are none. ``others_cores``:
    CPUs of the host that others used meanwhile, None if unknown. ``cores``: CPUs of the host.
    ``parts``: the parts of its steps, None if none was timed. ``ranking``: what ``ops`` are from.
    ``compiled``: the nodes in it that are programs of XLA, or parts of them. ``programs``: names of
    the job's programs, if they were recorded.
    """

    job: JobReader
    row: JobRow
    step_ns: float | None
    ops: Sequence[TopOp]
    shapes: Mapping[str, str]
    others_cores: float | None
    cores: int | None
    parts: Breakdown | None = None
    ranking: Ranking | None = None
    compiled: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset()

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes, with sums over the traced steps."""
        return self.ranking.profile.nodes if self.ranking else ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that differs exactly: its name, and its values before and after."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Diff:
    """The answer: the runs, what differs exactly, and how the times changed.

    ``step``: None if a run has no timed step. ``ops``: by key; ops that did not run on one side are
    ``new`` or ``gone``, with their times in ns. ``partial``: ops of both sides that not every run
    has; they are not compared.
    """

    before: Sequence[Run]
    after: Sequence[Run]
    differences: Sequence[Difference]
    step: Change | None
    ops: Comparison
    new: Mapping[str, float]
    gone: Mapping[str, float]
    partial: Sequence[str] = ()

    @property
    def is_spread(self) -> bool:
        """Whether the runs are compared with themselves, to find how much equal runs differ."""
        return self.before is self.after

    @property
    def parts(self) -> list[PartChange]:
        """The parts of a step in their order.

        Times are means over the runs whose parts are known.
        """
        sides = [[run.parts for run in side if run.parts is not None] for side in (self.before, self.after)]
        return part_changes(*sides) if all(sides) else []


def runs_of_baseline(store: StoreReader, name: str, without: Sequence[JobReader]) -> list[JobReader]:
    """Return the last ended jobs called ``name``; UsageError if there is none."""
    jobs = {job.info.uid: job for job in store.jobs()}
    runs = baseline_runs([job.info for job in jobs.values()], name, {job.info.uid for job in without})
    if not runs:
        raise UsageError(f"no ended job is called {name!r}: `tfprof jobs` lists all jobs")
    return [jobs[info.uid] for info in runs]


def sides_of_series(store: StoreReader, name: str) -> list[list[JobReader]]:
    """Return the runs of the series ``name`` by side; an empty list if there is no such series.

    A run is the process of a launch that has the most steps. Runs that failed are left out.
    UsageError if no run of a side is left.
    """
    sides: dict[str, dict[object, list[JobReader]]] = {}
    stored = {job.info.uid: job for job in store.jobs()}
    for info in in_series([job.info for job in stored.values()], name):
        launches = sides.setdefault(info.series, {})
        launches.setdefault(info.identity.get("launch"), []).append(stored[info.uid])
    runs = {
        side: [max(jobs, key=_steps_of) for jobs in launches.values() if not any(map(_has_failed, jobs))]
        for side, launches in sides.items()
    }
    for side, jobs in runs.items():
        if not jobs:
            raise UsageError(f"each run of {side} failed: there is nothing to compare")
    return [runs[side] for side in sorted(runs, reverse=True)]


def _steps_of(job: JobReader) -> int:
    return main_steps(channel_words(job.info))[1]


def _has_failed(job: JobReader) -> bool:
    return bool(job.info.end.get("status") or job.info.end.get("signal"))


def spread(jobs: Sequence[JobReader], now_ns: int) -> Diff:
    """Return how ``jobs``, runs of one program, differ: as a comparison with themselves."""
    runs = [_run(job, now_ns) for job in jobs]
    return _compare(runs, runs)


def diff(before: Sequence[JobReader], after: Sequence[JobReader], now_ns: int) -> Diff:
    """Return how the runs ``after`` differ from the runs ``before``."""
    return _compare([_run(job, now_ns) for job in before], [_run(job, now_ns) for job in after])


def _compare(before: Sequence[Run], after: Sequence[Run]) -> Diff:
    before, after = _with_programs(before, after)
    ops, new, gone, partial = _op_times(before, after)
    step = _step(before, after)
    return Diff(before, after, _differences(before, after), step, compare_ops(ops), new, gone, partial)


def diff_of_job(job: JobReader, moment_ns: int, now_ns: int) -> Diff:
    """Return how the steps of ``job`` since ``moment_ns`` (real time) differ from those before.

    UsageError unless there are untraced steps of the main kind on both sides.
    """
    return job.on_one_snapshot(lambda snapshot: _diff_of_snapshot(snapshot, moment_ns, now_ns))


def _diff_of_snapshot(job: JobReader, moment_ns: int, now_ns: int) -> Diff:
    row = job_row(job.info, ids_of([job])[job.info.hex], now_ns)
    spans = job.table("spans")
    kind = next(iter(main_kinds(job, spans)), None)
    rows = at_measured_starts(normal_spans(spans, kind)).sort_by("start_ns") if kind is not None else spans.slice(0, 0)
    timed = [
        TimedSteps(ordinal, count, start, total, is_normal=True)
        for ordinal, count, start, total in row_tuples(rows, "ordinal", "count", "start_ns", "total_ns")
        if total
    ]
    sides = [[group for group in timed if (group.start_ns >= moment_ns) == is_after] for is_after in (False, True)]
    if kind is None or not all(sides):
        raise UsageError(f"--before: the job has no untraced step {'before' if any(sides[1]) else 'after'} that time")
    runs = [
        _part(job, row, side, moment_ns, kind, is_after=is_after)
        for side, is_after in zip(sides, (False, True), strict=True)
    ]
    before, after = [runs[0]], [runs[1]]
    ops, new, gone, _ = _op_times(before, after)
    differences = [*_shape_differences(before, after), *_count_differences(before, after)]
    return Diff(
        before,
        after,
        differences,
        compare_series(Sides(*([group.total_ns / group.steps for group in side] for side in sides))),
        compare_ops(ops),
        new,
        gone,
    )


def _part(
    job: JobReader, row: JobRow, timed: Sequence[TimedSteps], moment_ns: int, kind: int, *, is_after: bool
) -> Run:
    """Return the part of a job before or after a moment, with the ops of its traced steps.

    ``timed``: its untraced steps of ``kind``.
    """
    traces = rows_of_kinds(job.table("traces", ("kind", "key", "step", "start_ns")), (kind,))
    steps = [step for step, start_ns in row_tuples(traces, "step", "start_ns") if (start_ns >= moment_ns) == is_after]
    ordinals = [group.ordinal for group in timed]
    parts = breakdown_of_steps(job, kind, (min(ordinals), max(ordinals)))
    ranking = rank_ops(job, (min(steps), max(steps)), (kind,)) if steps else None
    row = replace(row, steps=sum(group.steps for group in timed))
    return Run(job, row, median_step_ns(timed), _ops(ranking), {}, None, None, parts)


def op_key(op: TopOp) -> str:
    """Return the key of an op type on a device."""
    return f"{op.op} {op.device}"


def _ops(ranking: Ranking | None) -> Sequence[TopOp]:
    """Return the ops. If all are of one task, their devices do not name it.

    Two tasks of a cluster may be compared.
    """
    ops = ranking.ops if ranking else ()
    tasks = {op.device.rpartition(" ")[0] for op in ops}
    return [replace(op, device=op.device.rpartition(" ")[2]) for op in ops] if len(tasks) == 1 else ops


def _run(job: JobReader, now_ns: int) -> Run:
    return job.on_one_snapshot(lambda snapshot: _run_of_snapshot(snapshot, now_ns))


def _run_of_snapshot(job: JobReader, now_ns: int) -> Run:
    row = job_row(job.info, ids_of([job])[job.info.hex], now_ns)
    spans = job.table("spans")
    step_times = step_times_of(row, spans, functions_of(job.info))
    ranking = rank_ops(job)
    step = median_step(row, step_times, ranking.profile.kinds if ranking else ())
    parts = parts_of(job)
    traces = [number for _, numbers in ranking.profile.job_traces for number in numbers] if ranking else []
    return Run(
        job,
        row,
        step.spread.p50_ns if step else None,
        _ops(ranking),
        _shapes(
            job,
            traces[len(traces) // 2 :][:1],
            {node.name: node.op for node in ranking.profile.nodes} if ranking else {},
        ),
        *_others(job),
        main_breakdown(job, spans),
        ranking,
        compiled_nodes(ranking.profile.nodes, parts) if ranking else frozenset(),
        frozenset(program_name(part.module) for part in parts),
    )


def _with_programs(before: Sequence[Run], after: Sequence[Run]) -> tuple[Sequence[Run], Sequence[Run]]:
    """Return the runs with ops that let XLA's programs be compared with the ops they replaced.

    If only one side has programs, or if one side records them as a whole and the other side by op,
    they become one op, COMPILED. On the other side, COMPILED has the nodes that no longer run by
    themselves.
    """
    sides = before, after
    kinds = [{node.op in LAUNCHES for run in side for node in run.nodes if node.name in run.compiled} for side in sides]
    if before is after or kinds[0] == kinds[1]:
        return sides
    alone = [
        {node.name for run in side for node in run.nodes if node.stats.micros > 0 and node.name not in run.compiled}
        for side in sides
    ]
    first, second = (
        [
            _grouped(
                run,
                run.compiled | ({node.name for node in run.nodes} - alone[1 - number] if kinds[1 - number] else set()),
            )
            for run in side
        ]
        for number, side in enumerate(sides)
    )
    return first, second


def _grouped(run: Run, names: Collection[str]) -> Run:
    """Return ``run`` with the nodes called ``names`` as one op."""
    if run.ranking is None:
        return run
    nodes = [node._replace(op=COMPILED) if node.name in names else node for node in run.nodes]
    ops = top_ops(nodes, run.ranking.times, run.ranking.profile.trace_count)
    return replace(run, ops=_ops(run.ranking._replace(ops=ops)))


def _shapes(job: JobReader, traces: Sequence[int], op_types: Mapping[str, str]) -> dict[str, str]:
    """Return the shapes of each node's outputs in ``traces``, as texts, inputs of the graph first.

    Unknown shapes are left out. Of several executions the first counts.
    """
    if not traces:
        return {}
    executions = job.executions(traces, ("trace", "node", "outputs"))
    nodes, signatures = interned_texts(executions.names, NODE), interned_bytes(executions.names, OUTPUTS)
    shapes: dict[str, str] = {}
    for trace, node, outputs in row_tuples(executions.ops, "trace", "node", "outputs"):
        if trace in traces and outputs != NONE_ID and outputs in signatures:
            known = [dims for dims in shapes_by_slot(signatures[outputs]).values() if dims is not None]
            if known:
                shapes.setdefault(nodes[node], ", ".join("x".join(map(str, sizes)) or "scalar" for sizes in known))
    return dict(sorted(shapes.items(), key=lambda item: op_types.get(item[0]) not in _INPUTS))


def _others(job: JobReader) -> tuple[float | None, int | None]:
    """Return the CPUs that others used while the job ran, and the number of CPUs."""
    samples = job.table("samples")
    load = cpu_loads(samples, host_samples(job, samples).rows)
    return (fmean(interval.other_cores for interval in load), load[0].cpus) if load else (None, None)


def _step(before: Sequence[Run], after: Sequence[Run]) -> Change | None:
    sides = [[run.step_ns for run in side if run.step_ns] for side in (before, after)]
    return compare_step(Sides(*sides)) if all(sides) else None


def _op_times(
    before: Sequence[Run], after: Sequence[Run]
) -> tuple[dict[str, Sides], dict[str, float], dict[str, float], list[str]]:
    """Return the times of the ops that each run has, and the mean times of new and of gone ops.

    Last come the ops of both sides that some run lacks.
    """
    times = [_times_by_op(side) for side in (before, after)]
    common = {
        key: Sides(times[0][key], times[1][key])
        for key in times[0]
        if len(times[0][key]) == len(before) and len(times[1].get(key, ())) == len(after)
    }
    gone, new = (
        {key: fmean(values) for key, values in times[side].items() if key not in times[1 - side]} for side in (0, 1)
    )
    return common, new, gone, sorted(key for key in times[0] if key in times[1] and key not in common)


def _times_by_op(runs: Sequence[Run]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for op in run.ops:
            if op.ns > 0:
                times[op_key(op)].append(op.ns)
    return times


# -- what differs exactly ------------------------------------------------------------------------


def _differences(before: Sequence[Run], after: Sequence[Run]) -> list[Difference]:
    facts = [_fact(name, value, before, after) for name, value in _FACTS.items()]
    return [*filter(None, facts), *_shape_differences(before, after), *_count_differences(before, after)]


def _fact(name: str, value: Callable[[Run], object], before: Sequence[Run], after: Sequence[Run]) -> Difference | None:
    sides = [", ".join(sorted({str(value(run) or "unknown") for run in side})) for side in (before, after)]
    return None if sides[0] == sides[1] else Difference(name, *sides)


def _shape_differences(before: Sequence[Run], after: Sequence[Run]) -> list[Difference]:
    """Return a difference for each node whose output shapes changed, inputs of the graph first.

    Shapes that vary within a side are not compared.
    """
    constant = [_constant_shapes(side) for side in (before, after)]
    return [
        Difference(f"output of {node}", shape, constant[1][node])
        for node, shape in constant[0].items()
        if constant[1].get(node, shape) != shape
    ]


def _constant_shapes(runs: Sequence[Run]) -> dict[str, str]:
    first, *others = (run.shapes for run in runs)
    return {node: shape for node, shape in first.items() if all(other.get(node) == shape for other in others)}


def _count_differences(before: Sequence[Run], after: Sequence[Run]) -> list[Difference]:
    """Return the op types that run more or less often in a step, or allocate more or less.

    A difference counts only if all runs of one side are above all runs of the other side.
    """
    sides: list[dict[str, list[Any]]] = [defaultdict(list), defaultdict(list)]
    for ops, side in zip(sides, (before, after), strict=True):
        for run in side:
            for op in run.ops:
                if op.op != COMPILED:  # XLA runs other instructions, and allocates what they need together
                    ops[op_key(op)].append(op)
    return [
        Difference(f"{what} of {key} a step", form.format(median(old)), form.format(median(new)))
        for key in sides[0]
        if key in sides[1]
        for what, (form, equal) in _EXACT_FIGURES.items()
        for old, new in [[[getattr(op, what) for op in side[key]] for side in sides]]
        if max(min(old) - max(new), min(new) - max(old)) > equal * max(*old, *new)
    ]


# -- the ops of a spread -------------------------------------------------------------------------


def op_spreads(result: Diff) -> list[OpSpread]:
    """Return the ops that each run of a spread has, the longest time first."""
    times = _times_by_op(result.before)
    ops = [
        OpSpread(*_split(key), change.before_ns, min(times[key]), max(times[key]), change.visible)
        for key, change in result.ops.changes.items()
    ]
    return sorted(ops, key=lambda op: -op.ns)


# -- the ops of the answer -----------------------------------------------------------------------


def ops_by_change(result: Diff) -> list[OpChange]:
    """Return the ops, the largest changes first.

    Significant changes, and ops that ran on one side only, are in front of all others.
    """
    ops = [
        OpChange(*_split(key), change.before_ns, change.after_ns, change) for key, change in result.ops.changes.items()
    ]
    ops += [OpChange(*_split(key), None, time_ns) for key, time_ns in result.new.items()]
    ops += [OpChange(*_split(key), time_ns, None) for key, time_ns in result.gone.items()]
    return sorted(ops, key=lambda op: (not _is_certain(op), -abs((op.after_ns or 0) - (op.before_ns or 0))))


def _is_certain(op: OpChange) -> bool:
    return op.change is None or bool(op.change.significant)


def _split(key: str) -> tuple[str, str]:
    parts = _KEY.fullmatch(key)
    return (parts[1], parts[2]) if parts else (key, "")
