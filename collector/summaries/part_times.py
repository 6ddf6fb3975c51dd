"""Breaks the steps of a job down into parts.

The inside of a step is cut where it was traced, the time between steps in all timed steps.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from ..numbers import count as count_text
from ..numbers import duration
from .activity_parts import add_activities_in_steps, add_gaps
from .op_classes import DEVICE, INPUT, ITERATOR_DEVICE, LAUNCH, PIPELINE_DEVICE, PYTHON, WAITING, OpClass
from .parts import (
    ASLEEP,
    CODE_BETWEEN,
    EAGER_OPS,
    FIRST_BATCHES,
    FOR_CPU,
    FOR_CPU_BETWEEN,
    FROM_SAMPLES,
    FROM_SPANS,
    FROM_TRACE,
    OPS_FOR_CPU,
    TRACING,
    UNEXPLAINED,
    UNRECORDED,
    Breakdown,
    Detail,
    Recording,
    Sums,
)
from .series import weighted_median
from .step_cut import AFTER, BEFORE, BETWEEN_OPS, covered, cut
from .step_records import NamedSum, Period, StepTrace, ThreadUse, TimedSteps, periods

#: A traced step is typical if its duration is within this factor of the median untraced step.
_TYPICAL_FACTOR: Final = 1.5
#: All traced steps together are typical if their mean is at most this multiple of the untraced one,
#: and not so short that they cannot stand for it.
_MEAN_FACTOR: Final = 1.1
#: Traced steps may be shorter than untraced steps by this factor, and still stand for them.
_STRETCH_MAX: Final = 1.25
#: Of this many traced steps or more, those near the median step stand for it only if half are near.
_TRACES_MIN: Final = 3
#: An input pipeline counts as always busy if its function runs for this share of the time.
_BUSY_SHARE: Final = 0.8
#: Ends of the names of stages that wait for other stages.
WAITING_STAGES: Final = ("Root", "Prefetch", "FiniteRepeat", "Repeat", "Skip", "Take")
#: A pause of this length (ns), and of this multiple of the median period, is no part of a step.
_BREAK_NS: Final = 10_000_000_000
_BREAK_FACTOR: Final = 100.0
#: The first steps of a call are left out if there are at least this many entries.
_ENTRIES_MIN: Final = 4
#: A note is made if the other threads wait for a CPU for this time or more, in seconds each second.
_QUEUED_NOTE_MIN: Final = 1.0
_LONGER: Final = "untraced steps take longer than the traced ones"
_OUTLIERS: Final = "some steps take longer than the typical one"


def break_down(recording: Recording) -> Breakdown | None:
    """Return the parts of the steps of ``recording``; None if none of them was timed."""
    groups, left_out = _typical(recording.steps)
    if not groups:
        return None
    steps = sum(group.steps for group in groups)
    inside_ns = sum(group.total_ns for group in groups) / steps
    # The time after a traced step is that of its trace, too.
    counting = {group.ordinal for group in groups if group.is_normal}
    kept, breaks = _without_breaks(
        [period for period in periods(recording.steps, inside_ns) if period.steps.ordinal in counting]
    )
    gap_ns = sum(period.gap_ns for period in kept) / max(1, sum(period.number for period in kept))
    # The durations of sampled steps are estimates, which the measured periods limit.
    inside_ns, gap_ns = inside_ns + min(0.0, gap_ns), max(0.0, gap_ns)
    # That of all steps, as other screens have it.
    median_ns = median_step_ns([group for group in recording.steps if group.is_normal] or groups)
    typical_traces, notes = _typical_traces(recording.traces, median_ns, inside_ns)
    sums = Sums()
    _add_inside(sums, recording, typical_traces, inside_ns, median_ns)
    _add_input(sums, recording, inside_ns + gap_ns)
    _add_first_batches(sums, recording, groups, median_ns)
    add_activities_in_steps(sums, recording, groups, kept, steps)
    if kept:
        add_gaps(sums, recording, kept, gap_ns)
    _add_python(sums, recording, inside_ns + gap_ns)
    return Breakdown(
        recording.kind,
        steps,
        sum(group.steps for group in recording.steps),
        len(typical_traces),
        inside_ns + gap_ns,
        inside_ns,
        median_ns,
        sums.parts(),
        tuple(filter(None, [left_out, breaks, *notes, _queue_note(recording.use)])),
        _means(recording, recording.functions),
        _means(recording, recording.marked),
        recording.is_eager,
    )


def _queue_note(use: ThreadUse | None) -> str:
    """Return a note about how long the threads of ops wait for CPUs.

    That is part of the ops' time.
    """
    others = use.queued_all - use.queued if use is not None else 0.0
    if others < _QUEUED_NOTE_MIN:
        return ""
    return (
        f"the job's other threads wait {duration(others * 1e9)} for a CPU each second: an op that waits counts as on"
        " the device"
    )


def _means(recording: Recording, sums: Iterable[NamedSum]) -> tuple[Detail, ...]:
    """Return the means of ``sums`` over all steps."""
    steps = sum(group.steps for group in recording.steps)
    return tuple(Detail(each.name, each.total_ns / steps) for each in sums)


def median_step_ns(steps: Sequence[TimedSteps]) -> float:
    """Return the median duration of one or more steps.

    Steps timed together count with their mean.
    """
    return weighted_median((group.total_ns / group.steps, group.steps) for group in steps)


def _typical(steps: Sequence[TimedSteps]) -> tuple[list[TimedSteps], str]:
    """Return the steps that count, and a note about the others.

    The first steps of each call prepare what later steps only use, and traced steps take longer. If
    there are no other steps, these count, too.
    """
    normal = [group for group in steps if group.is_normal]
    if not normal:
        return (
            list(steps),
            "all steps were traced or prepared something: the times are theirs, without the time between them"
            if steps
            else "",
        )
    first_ordinals = {group.key: group.ordinal for group in reversed(normal)}
    later = [group for group in normal if first_ordinals[group.key] != group.ordinal]
    if len(later) < _ENTRIES_MIN:
        return normal, ""
    first_ns = sum(group.total_ns for group in normal) - sum(group.total_ns for group in later)
    first = sum(group.steps for group in normal) - sum(group.steps for group in later)
    is_long = first_ns > 2 * first * median_step_ns(later)
    return later, (
        f"without the first {'step' if first == 1 else f'{count_text(first)} steps'} of each call, {duration(first_ns)}"
        if is_long
        else ""
    )


def _without_breaks(periods: Sequence[Period]) -> tuple[list[Period], str]:
    """Return ``periods`` without long pauses of the job, and a note about these."""
    if not periods:
        return [], ""
    typical_ns = median(period.ns for period in periods)
    limit_ns = max(_BREAK_NS, _BREAK_FACTOR * typical_ns)

    def break_ns(period: Period) -> float:
        # Steps that were timed together have typical pauses between them, too.
        return period.gap_ns - (period.number - 1) * typical_ns

    breaks = [length_ns for length_ns in map(break_ns, periods) if length_ns > limit_ns]
    return [period for period in periods if break_ns(period) <= limit_ns], (
        f"without {'a pause' if len(breaks) == 1 else f'{len(breaks)} pauses'} of {duration(sum(breaks))}"
        if breaks
        else ""
    )


def _typical_traces(traces: Sequence[StepTrace], median_ns: float, mean_ns: float) -> tuple[list[StepTrace], list[str]]:
    """Return the traced steps to cut, the typical ones if there are any, and notes about them.

    Steps that are short and long in turn, as with batches made ahead, are typical together. A few
    short ones do not stand for all steps.
    """
    timed = [trace for trace in traces if trace.duration_ns > 0 and trace.executions]
    if not timed:
        reason = "no op was recorded in the traced steps" if traces else "no step was traced"
        return [], [f"{reason}, so the inside of the steps is not cut"]
    traced_mean_ns = sum(trace.duration_ns for trace in timed) / sum(trace.steps for trace in timed)
    if mean_ns / _STRETCH_MAX <= traced_mean_ns <= mean_ns * _MEAN_FACTOR:
        return timed, []
    typical = [
        trace
        for trace in timed
        if median_ns / _TYPICAL_FACTOR <= trace.duration_ns / trace.steps <= median_ns * _TYPICAL_FACTOR
    ]
    if typical and (len(timed) < _TRACES_MIN or 2 * len(typical) >= len(timed)):
        return typical, []
    number = "few traced steps are" if typical else "no traced step is"
    traced_median_ns = median(trace.duration_ns / trace.steps for trace in timed)
    return timed, [f"{number} typical: traced {duration(traced_median_ns)}, others {duration(median_ns)}"]


def _add_inside(
    sums: Sums, recording: Recording, traces: Sequence[StepTrace], inside_ns: float, median_ns: float
) -> None:
    """Add the parts of the traced steps, fitted to the mean step."""
    if not traces:
        reason = "in which no op was recorded" if recording.traces else "which were not traced"
        sums.add(UNEXPLAINED, inside_ns, FROM_SPANS, f"inside of the steps, {reason}")
        return
    for op_class, time_ns in _mean_cut(recording, traces).items():
        is_python = recording.is_eager and op_class == BETWEEN_OPS
        detail = EAGER_OPS if is_python else op_class.detail
        sums.add(PYTHON if is_python else op_class.part, time_ns, FROM_TRACE, detail)
    traced_ns = sums.total
    if inside_ns < traced_ns <= _TYPICAL_FACTOR * inside_ns:
        # The time without ops includes the cost of tracing.
        sums.take((BEFORE, LAUNCH, AFTER, PYTHON), traced_ns - inside_ns)
    if inside_ns <= traced_ns * _STRETCH_MAX:
        sums.scale(list(sums.ns), inside_ns / sums.total)
        return
    typical_ns = min(inside_ns, median_ns)
    sums.add(UNEXPLAINED, typical_ns - traced_ns, FROM_SPANS, _LONGER)
    sums.add(UNEXPLAINED, inside_ns - max(traced_ns, typical_ns), FROM_SPANS, _OUTLIERS)


def _mean_cut(recording: Recording, traces: Sequence[StepTrace]) -> dict[OpClass, float]:
    """Return the mean times of the classes in ``traces``, some of the recording's.

    The start and the end of a profiler session prolong the time before the first op and after the
    last op of a step. For these two, the shortest time of all traced steps is returned instead of
    the mean.
    """
    cuts = [(trace, cut(trace, recording.phases)) for trace in recording.traces]
    typical = set(map(id, traces))
    times: Counter[OpClass] = Counter()
    for trace, parts in cuts:
        times.update(parts if id(trace) in typical else {})
    steps = sum(trace.steps for trace in traces)
    means = {op_class: time_ns / steps for op_class, time_ns in times.items()}
    for at_end in (OpClass(BEFORE), OpClass(AFTER)):
        if at_end in means:
            means[at_end] = min(means[at_end], *(parts.get(at_end, 0) / trace.steps for trace, parts in cuts))
    return means


def _add_input(sums: Sums, recording: Recording, period_ns: float) -> None:
    """Count the extra time of untraced steps as input, if the input pipeline is always busy.

    A step cannot begin before its batch is made. The first steps of a job, which are traced, take
    batches that were made in advance.
    """
    longer_ns = sums.details[UNEXPLAINED].get(_LONGER, 0.0)
    if not longer_ns or not (sums.ns[INPUT] or recording.functions):
        return
    function = next(iter(recording.functions), None)
    steps = sum(group.steps for group in recording.steps)
    if function is not None and function.total_ns / steps >= _BUSY_SHARE * period_ns:
        _move(sums, _LONGER, INPUT, longer_ns, f"for {function.name}", FROM_SPANS)
    elif median(_pipeline_share(trace) for trace in recording.traces) >= _BUSY_SHARE:
        _move(sums, _LONGER, INPUT, longer_ns, "for the pipeline, which is always busy", FROM_TRACE)


def _add_first_batches(sums: Sums, recording: Recording, groups: Sequence[TimedSteps], median_ns: float) -> None:
    """Count as input what the first steps of epochs take beyond the median, if steps have input."""
    outliers_ns = sums.details[UNEXPLAINED].get(_OUTLIERS, 0.0)
    if not outliers_ns or not sums.ns[INPUT]:
        return
    starts = [group.measured_start.ns for group in groups]
    firsts = {bisect_left(starts, epoch_ns) for epoch_ns in recording.epochs} - {len(groups)}
    longer_ns = sum(max(0.0, groups[at].total_ns - groups[at].steps * median_ns) for at in firsts)
    longer_ns /= sum(group.steps for group in groups)
    _move(sums, _OUTLIERS, INPUT, min(outliers_ns, longer_ns), FIRST_BATCHES, FROM_SPANS)


def _pipeline_share(trace: StepTrace) -> float:
    """Return the share of a step in which a stage of the input pipeline works."""
    busy = [
        (max(0, execution.start_ns), min(execution.end_ns, trace.duration_ns))
        for execution in trace.executions
        if execution.device == PIPELINE_DEVICE
        or (execution.device == ITERATOR_DEVICE and not execution.node.endswith(WAITING_STAGES))
    ]
    return covered(busy) / trace.duration_ns if trace.duration_ns > 0 else 0.0


def _add_python(sums: Sums, recording: Recording, period_ns: float) -> None:
    """Split the time without an op or span by what the step's thread did in it.

    The thread used a CPU, waited for one, or slept. Time that cannot be assigned to one of these
    stays not explained.
    """
    use = recording.use
    if use is None:
        return
    gap_ns = sums.details[UNEXPLAINED].get(UNRECORDED, 0.0)
    cpu_ns, queued_ns = use.cpu * period_ns, use.queued * period_ns
    # The thread also uses its CPU between the ops, and during the ops if they run one by one.
    eager_ns = sums.details[PYTHON].get(EAGER_OPS, 0.0)
    busy_ns = sums.ns[BEFORE] + sums.ns[AFTER] + sums.ns[TRACING] + sums.ns[PYTHON] - eager_ns
    if recording.is_eager or not use.is_exact:
        busy_ns += eager_ns + sums.ns[DEVICE]
    # Where it waits for a CPU, it does so in these parts, too.
    busy_ns *= cpu_ns / (cpu_ns + queued_ns) if queued_ns > 0 else 1.0
    python_ns = min(gap_ns, max(0.0, cpu_ns - busy_ns))
    queued_gap_ns = min(gap_ns - python_ns, queued_ns)
    asleep_ns = max(0.0, gap_ns - max(python_ns, cpu_ns) - queued_gap_ns)
    _move(sums, UNRECORDED, PYTHON, python_ns, CODE_BETWEEN)
    _move(sums, UNRECORDED, WAITING, queued_gap_ns, FOR_CPU_BETWEEN)
    _move(sums, UNRECORDED, WAITING, asleep_ns, ASLEEP)
    outliers_ns = sums.details[UNEXPLAINED].get(_OUTLIERS, 0.0)
    waits_ns = max(0.0, min(outliers_ns, queued_ns - queued_gap_ns))
    _move(sums, _OUTLIERS, WAITING, waits_ns, FOR_CPU)
    # Of the time in which the job's threads could run, this is the share in which they wait.
    others_queued = max(0.0, use.queued_all - use.queued)
    share = others_queued / (others_queued + recording.cores) if recording.cores else 0.0
    _move(sums, _OUTLIERS, WAITING, min(1.0, others_queued) * share * (outliers_ns - waits_ns), OPS_FOR_CPU)


def _move(sums: Sums, cause: str, slug: str, ns: float, detail: str, evidence: str = FROM_SAMPLES) -> None:
    """Move time from a detail of what is not explained to another part."""
    if ns > 0:
        sums.ns[UNEXPLAINED] -= ns
        sums.details[UNEXPLAINED][cause] -= ns
        sums.add(slug, ns, evidence, detail)
