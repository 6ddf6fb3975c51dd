"""The parts of a step: where the time from its start to the next one's start goes.

The parts are means, so that they add up to the mean time from start to start. The inside of a step
is cut where it was traced, the time between steps in all timed steps.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median
from typing import Final, NamedTuple

from ..numbers import count as count_text
from ..numbers import duration
from .op_classes import COPIES, DEVICE, INPUT, ITERATOR_DEVICE, LAUNCH, PIPELINE_DEVICE, PYTHON, WAITING, OpClass
from .step_cut import AFTER, BEFORE, BETWEEN_OPS, Interval, covered, cut, union
from .step_records import Activity, NamedSum, OtherSpan, StepTrace, ThreadUse, TimedSteps

BETWEEN, TRACING, UNEXPLAINED = "between", "tracing", "unexplained"
#: The parts by slug, in the order of a step, with their titles.
TITLES: Final = {
    INPUT: "input",
    BEFORE: "before the device",
    DEVICE: "on the device",
    LAUNCH: "starting ops",
    COPIES: "copies",
    WAITING: "waiting",
    AFTER: "after the device",
    TRACING: "building graphs",
    BETWEEN: "between steps",
    PYTHON: "Python",
    UNEXPLAINED: "not explained",
}
#: Categories of activities -> the part that has their time. Others are between steps.
_PART_OF_CATEGORY: Final = {
    "input": INPUT,
    "gc": PYTHON,
    "python_function": PYTHON,
    "tracing": TRACING,
    "first_run": TRACING,
    "fetch": AFTER,
    "conversion": BEFORE,
}
_MARKS: Final = ("mark", "part")
#: Titles of the categories that are shown under another name.
_CATEGORY_TITLES: Final = {
    "gc": "garbage collection",
    "python_function": "Python function",
    "tracing": "tracing of",
    "first_run": "first run of",
}
_KIND_TITLES: Final = {"evaluate": "evaluation", "test_batch": "evaluation", "predict_batch": "predict"}

#: A traced step is typical if its duration is within this factor of the median untraced step.
_TYPICAL_FACTOR: Final = 1.5
#: All traced steps together are typical if their mean is at most this multiple of the untraced one,
#: and not so short that they cannot stand for it.
_MEAN_FACTOR: Final = 1.1
#: Traced steps may be shorter than untraced steps by this factor, and still stand for them.
_STRETCH_MAX: Final = 1.25
#: An input pipeline counts as always busy if its function runs for this share of the time.
_BUSY_SHARE: Final = 0.8
#: Ends of the names of stages that wait for other stages.
WAITING_STAGES: Final = ("Root", "Prefetch", "FiniteRepeat", "Repeat", "Skip", "Take")
#: A pause of this length (ns), and of this multiple of the median period, is no part of a step.
_BREAK_NS: Final = 10_000_000_000
_BREAK_FACTOR: Final = 100.0
#: The first steps of a call are left out if there are at least this many entries.
_ENTRIES_MIN: Final = 4

EAGER_OPS: Final = "between eager ops"
FOR_CPU: Final = "for a CPU"
FOR_CPU_BETWEEN: Final = "for a CPU between the steps"
#: Other threads of the job, which run ops, waited for one.
OPS_FOR_CPU: Final = "ops for a CPU"
#: The name of time in which the step's thread neither used a CPU nor waited for one.
CODE_BETWEEN: Final = "code between the steps"
ASLEEP: Final = "asleep between the steps"
#: A note is made if the other threads wait for a CPU for this time or more, in seconds each second.
_QUEUED_NOTE_MIN: Final = 1.0
_LONGER: Final = "untraced steps take longer than the traced ones"
_OUTLIERS: Final = "some steps take longer than the typical one"
#: The input pipeline begins anew with each epoch.
FIRST_BATCHES: Final = "for the first batches of epochs"
UNRECORDED: Final = "code between the steps that is in no span"

FROM_TRACE, FROM_SPANS, FROM_SAMPLES = "traced steps", "all timed steps", "samples"


class Recording(NamedTuple):
    """What is recorded about the steps of one kind, on the thread with the most time in them.

    ``steps`` are sorted by time. ``phases``: the phase of training of each node that has one.
    ``is_eager``: the steps run op by op, so the step's thread is busy with Python between two ops.
    ``epochs``: the starts of the epochs. ``cores``: the CPUs that the job used, 0 if unknown.
    """

    kind: str
    steps: Sequence[TimedSteps]
    others: Sequence[OtherSpan] = ()
    activities: Sequence[Activity] = ()
    traces: Sequence[StepTrace] = ()
    functions: Sequence[NamedSum] = ()
    marked: Sequence[NamedSum] = ()
    phases: Mapping[str, str] = {}
    use: ThreadUse | None = None
    is_eager: bool = False
    epochs: Sequence[int] = ()
    cores: float = 0.0


class Detail(NamedTuple):
    """What takes the time of a part: a name, and its mean time in a step, ns."""

    name: str
    mean_ns: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the step: its mean time, ns, and the sources of this figure."""

    slug: str
    mean_ns: float
    details: tuple[Detail, ...]
    evidence: str

    @property
    def title(self) -> str:
        """The name of the part for users."""
        return TITLES[self.slug]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The parts of the steps of one kind; times in ns.

    ``steps``: number of steps that count, of ``all_steps`` timed ones. ``traced``: number of traced
    steps whose inside was cut. ``period_ns``: mean time from start to start, the sum of the parts.
    ``step_ns``, ``median_ns``: mean and median step. ``notes``: what limits these figures.
    ``pipeline``: the user's functions in the input pipeline, whose times are no part, since
    they run beside the steps. ``marked``: parts that the user's code marks, which contain parts or
    whole steps. ``is_eager``: the steps run op by op.
    """

    kind: str
    steps: int
    all_steps: int
    traced: int
    period_ns: float
    step_ns: float
    median_ns: float
    parts: tuple[Part, ...]
    notes: tuple[str, ...]
    pipeline: tuple[Detail, ...] = ()
    marked: tuple[Detail, ...] = ()
    is_eager: bool = False

    def ns(self, slug: str) -> float:
        """Return the time of a part, 0 if it has none."""
        return sum(part.mean_ns for part in self.parts if part.slug == slug)

    def share(self, slug: str) -> float:
        """Return the share of a part in the time from start to start."""
        return self.ns(slug) / self.period_ns if self.period_ns > 0 else 0.0

    @property
    def queued_ns(self) -> float:
        """The time in which the thread of the steps waits for a CPU."""
        details = self.detail_ns(WAITING)
        return details.get(FOR_CPU, 0.0) + details.get(FOR_CPU_BETWEEN, 0.0)

    def detail_ns(self, slug: str) -> dict[str, float]:
        """Return the details of a part, by name."""
        return {detail.name: detail.mean_ns for part in self.parts if part.slug == slug for detail in part.details}


class PartChange(NamedTuple):
    """The mean time of a part before and after a change, ns."""

    slug: str
    before_ns: float
    after_ns: float


def part_changes(before: Sequence[Breakdown], after: Sequence[Breakdown]) -> list[PartChange]:
    """Return the parts that the runs of either side have. Each side must have at least one run."""
    changes = (PartChange(slug, *(fmean(run.ns(slug) for run in side) for side in (before, after))) for slug in TITLES)
    return [change for change in changes if change.before_ns or change.after_ns]


class _Sums:
    """Times by part and detail, with their sources."""

    def __init__(self) -> None:
        self.ns: dict[str, float] = defaultdict(float)
        self.details: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.evidence: dict[str, dict[str, None]] = defaultdict(dict)

    def add(self, slug: str, ns: float, evidence: str, detail: str = "") -> None:
        if ns <= 0:
            return
        self.ns[slug] += ns
        self.evidence[slug][evidence] = None
        if detail:
            self.details[slug][detail] += ns

    def take(self, slugs: Iterable[str], ns: float) -> float:
        """Take ``ns`` from the parts ``slugs`` in proportion; return what they did not have."""
        available = {slug: self.ns[slug] for slug in slugs if self.ns[slug] > 0}
        taken = min(ns, sum(available.values()))
        if taken > 0:
            self.scale(available, 1 - taken / sum(available.values()))
        return ns - taken

    def scale(self, slugs: Iterable[str], factor: float) -> None:
        for slug in slugs:
            self.ns[slug] *= factor
            for name in self.details[slug]:
                self.details[slug][name] *= factor

    @property
    def total(self) -> float:
        return sum(self.ns.values())

    def parts(self) -> tuple[Part, ...]:
        return tuple(
            Part(
                slug,
                self.ns[slug],
                tuple(
                    Detail(name, ns)
                    for name, ns in sorted(self.details[slug].items(), key=lambda pair: -pair[1])
                    if ns > 1
                ),
                ", ".join(self.evidence[slug]),
            )
            for slug in TITLES
            if self.ns[slug] > 1
        )


class _Period(NamedTuple):
    """Steps that were timed together, and the time to the start of the next ones."""

    steps: int
    inside_ns: int
    gap: Interval

    @property
    def gap_ns(self) -> int:
        return self.gap[1] - self.gap[0]


def break_down(recording: Recording) -> Breakdown | None:
    """Return the parts of the steps of ``recording``; None if none of them was timed."""
    groups, left_out = _typical(recording.steps)
    if not groups:
        return None
    # The time after a traced step is that of its trace, too.
    is_known = any(group.is_normal for group in groups)
    periods, breaks = _without_breaks(_periods(recording.steps, groups) if is_known else ())
    steps = sum(group.steps for group in groups)
    inside_ns = sum(group.total_ns for group in groups) / steps
    gap_steps = sum(period.steps for period in periods)
    gap_ns = sum(period.gap_ns for period in periods) / gap_steps if gap_steps else 0.0
    # That of all steps, as other screens have it.
    median_ns = median_step_ns([group for group in recording.steps if group.is_normal] or groups)
    typical_traces, notes = _typical_traces(recording.traces, median_ns, inside_ns)
    sums = _Sums()
    _add_inside(sums, recording, typical_traces, inside_ns, median_ns)
    _add_input(sums, recording, inside_ns + gap_ns)
    _add_first_batches(sums, recording, groups, median_ns)
    _add_activities_in_steps(sums, recording, groups, steps)
    if periods:
        _add_gaps(sums, recording, periods, gap_ns)
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
    step_count = sum(group.steps for group in steps)
    ordered = sorted(steps, key=lambda group: group.total_ns / group.steps)
    counts = accumulate(group.steps for group in ordered)
    return next(
        group.total_ns / group.steps for group, count in zip(ordered, counts, strict=True) if 2 * count >= step_count
    )


# -- which steps count -----------------------------------------------------------------------------


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


def _periods(steps: Sequence[TimedSteps], groups: Sequence[TimedSteps]) -> Iterator[_Period]:
    """Yield the steps of ``groups`` whose next step is known, and may not be traced.

    After a traced step the job waits for the trace, so the time up to the next step is not typical.
    """
    counting = {group.ordinal for group in groups}
    for group, next_group in pairwise(steps):
        if group.ordinal in counting and group.last + 1 == next_group.ordinal:
            # Steps that were timed together have pauses between them. Their gap is the rest of the
            # time.
            end_ns = min(group.start_ns + group.total_ns, next_group.start_ns)
            yield _Period(group.steps, end_ns - group.start_ns, (end_ns, next_group.start_ns))


def _without_breaks(periods: Iterable[_Period]) -> tuple[list[_Period], str]:
    """Return ``periods`` without long pauses of the job, and a note about these."""
    all_periods = list(periods)
    if not all_periods:
        return [], ""
    typical_ns = median((period.inside_ns + period.gap_ns) / period.steps for period in all_periods)
    limit_ns = max(_BREAK_NS, _BREAK_FACTOR * typical_ns)
    kept = [period for period in all_periods if period.gap_ns <= limit_ns]
    broken_ns = sum(period.gap_ns for period in all_periods) - sum(period.gap_ns for period in kept)
    number = len(all_periods) - len(kept)
    return kept, (
        f"without {'a pause' if number == 1 else f'{number} pauses'} of {duration(broken_ns)}" if number else ""
    )


def _typical_traces(traces: Sequence[StepTrace], median_ns: float, mean_ns: float) -> tuple[list[StepTrace], list[str]]:
    """Return the traced steps to cut, the typical ones if there are any, and notes about them.

    Steps that are short and long in turn, as with batches made ahead, are typical together.
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
    if typical:
        return typical, []
    return timed, [
        (
            f"no traced step is typical: traced {duration(median(trace.duration_ns / trace.steps for trace in timed))},"
            f" others {duration(median_ns)}"
        )
    ]


# -- inside of the steps ---------------------------------------------------------------------------


def _add_inside(
    sums: _Sums, recording: Recording, traces: Sequence[StepTrace], inside_ns: float, median_ns: float
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


def _add_input(sums: _Sums, recording: Recording, period_ns: float) -> None:
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


def _add_first_batches(sums: _Sums, recording: Recording, groups: Sequence[TimedSteps], median_ns: float) -> None:
    """Count as input what the first steps of epochs take beyond the median, if steps have input."""
    outliers_ns = sums.details[UNEXPLAINED].get(_OUTLIERS, 0.0)
    if not outliers_ns or not sums.ns[INPUT]:
        return
    starts = [group.start_ns for group in groups]
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


def _add_activities_in_steps(sums: _Sums, recording: Recording, groups: Sequence[TimedSteps], steps: int) -> None:
    """Add the activities within steps. Their time is taken from the time without ops."""
    starts = union((group.start_ns, group.start_ns + max(1, group.total_ns)) for group in groups)
    by_name: Counter[tuple[str, str]] = Counter()
    in_steps = [activity for activity in recording.activities if activity.in_step]
    first_ns = [(activity.start_ns, activity.start_ns + 1) for activity in in_steps]
    for activity, is_within in zip(in_steps, _overlaps(first_ns, starts), strict=True):
        if is_within:
            by_name[activity.category, activity.name] += activity.own_ns
    for (category, name), own_ns in by_name.items():
        slug = _PART_OF_CATEGORY.get(category, BETWEEN)
        mean_ns = own_ns / steps
        if slug == INPUT:
            # It contains the ops that wait.
            mean_ns = max(0.0, mean_ns - sums.ns[INPUT])
        lacking_ns = sums.take((UNEXPLAINED, BEFORE, LAUNCH, AFTER, PYTHON), mean_ns)
        sums.add(slug, mean_ns - lacking_ns, FROM_SPANS, _activity_title(category, name))


def _activity_title(category: str, name: str) -> str:
    return f"{_CATEGORY_TITLES.get(category, category)} {name}".strip()


# -- between the steps -----------------------------------------------------------------------------


def _add_gaps(sums: _Sums, recording: Recording, periods: Sequence[_Period], gap_ns: float) -> None:
    """Add what takes the time between steps. Time in no span is Python, or is not explained."""
    steps = sum(period.steps for period in periods)
    found: dict[tuple[str, str], float] = defaultdict(float)
    gaps = union(period.gap for period in periods)
    spans = _outermost_spans(recording.others)
    activities = _outside_of(spans, _without_marks_of_steps(recording))
    for activity, within_ns in _within(activities, gaps):
        title = _activity_title(activity.category, activity.name)
        found[_PART_OF_CATEGORY.get(activity.category, BETWEEN), title] += within_ns
    outer = union(_span_of(activity) for activity in activities if activity.entries == 1)
    span_times = _overlaps([interval for _, interval in spans], _without(gaps, outer))
    for (name, _), span_ns in zip(spans, span_times, strict=True):
        found[BETWEEN, name] += span_ns
    total_ns = sum(found.values()) / steps
    factor = min(1.0, gap_ns / total_ns) if total_ns > 0 else 1.0
    for (slug, title), time_ns in found.items():
        sums.add(slug, factor * time_ns / steps, FROM_SPANS, title)
    sums.add(UNEXPLAINED, gap_ns - factor * total_ns, FROM_SPANS, UNRECORDED)


def _without_marks_of_steps(recording: Recording) -> list[Activity]:
    """Return the activities outside of steps, without marks that contain steps."""
    activities = [activity for activity in recording.activities if not activity.in_step]
    ends = [(group.start_ns + group.total_ns, group.total_ns // group.steps) for group in recording.steps]
    steps = union((end_ns - step_ns, end_ns) for end_ns, step_ns in ends)  # the last of each group
    firsts = [(each.start_ns, each.start_ns + (each.end_ns - each.start_ns) // each.entries) for each in activities]
    balance: Counter[tuple[str, str]] = Counter()  # above 0 if most of these marks contain steps
    for activity, overlap_ns in zip(activities, _overlaps(firsts, steps), strict=True):
        if activity.category in _MARKS and activity.own_ns > 0:
            balance[activity.category, activity.name] += 1 if overlap_ns else -1
    return [activity for activity in activities if balance[activity.category, activity.name] <= 0]


def _within(activities: Sequence[Activity], gaps: Sequence[Interval]) -> Iterator[tuple[Activity, float]]:
    """Yield the activities in ``gaps``, with their own time there.

    Activities that share an entry may lie in several gaps. They count if the first of them lies in
    a gap.
    """
    for activity, gap_ns in zip(activities, _overlaps([_span_of(each) for each in activities], gaps), strict=True):
        if gap_ns:
            length_ns = max(1, activity.end_ns - activity.start_ns)
            yield activity, activity.own_ns * (gap_ns / length_ns if activity.entries == 1 else 1.0)


def _span_of(activity: Activity) -> Interval:
    return activity.start_ns, activity.end_ns if activity.entries == 1 else activity.start_ns + 1


def _overlaps(intervals: Sequence[Interval], disjoint: Sequence[Interval]) -> list[int]:
    """Return for each of ``intervals`` the time that ``disjoint`` covers, which is sorted."""
    starts = [start for start, _ in disjoint]
    lengths = [0, *accumulate(end - start for start, end in disjoint)]

    def until(t_ns: int) -> int:
        index = bisect_right(starts, t_ns)
        if not index:
            return 0
        start, end = disjoint[index - 1]
        return lengths[index - 1] + min(t_ns, end) - start

    return [max(0, until(end) - until(start)) for start, end in intervals]


def _outermost_spans(others: Sequence[OtherSpan]) -> list[tuple[str, Interval]]:
    """Return the names and intervals of the outermost spans of other kinds."""
    outermost = []
    last_end_ns = 0
    for span in sorted(others, key=lambda span: (span.start_ns, -span.end_ns)):
        if span.end_ns > last_end_ns:
            name = _KIND_TITLES.get(span.kind, span.kind)
            outermost.append((name, (max(span.start_ns, last_end_ns), span.end_ns)))
            last_end_ns = span.end_ns
    return outermost


def _outside_of(spans: Sequence[tuple[str, Interval]], activities: Sequence[Activity]) -> list[Activity]:
    """Return the activities that began in none of ``spans``."""
    starts = [(activity.start_ns, activity.start_ns + 1) for activity in activities]
    within = _overlaps(starts, [interval for _, interval in spans])
    return [activity for activity, is_within in zip(activities, within, strict=True) if not is_within]


def _without(intervals: Sequence[Interval], removed: Sequence[Interval]) -> list[Interval]:
    """Return the parts of sorted disjoint ``intervals`` that sorted disjoint ``removed`` leave."""
    left: list[Interval] = []
    position = 0
    for start, end in intervals:
        while position < len(removed) and removed[position][1] <= start:
            position += 1
        at, since = position, start
        while at < len(removed) and removed[at][0] < end:
            left.append((since, removed[at][0]))
            since = max(since, removed[at][1])
            at += 1
        left.append((since, end))
    return [(start, end) for start, end in left if start < end]


# -- the rest --------------------------------------------------------------------------------------


def _add_python(sums: _Sums, recording: Recording, period_ns: float) -> None:
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


def _move(sums: _Sums, cause: str, slug: str, ns: float, detail: str, evidence: str = FROM_SAMPLES) -> None:
    """Move time from a detail of what is not explained to another part."""
    if ns > 0:
        sums.ns[UNEXPLAINED] -= ns
        sums.details[UNEXPLAINED][cause] -= ns
        sums.add(slug, ns, evidence, detail)
