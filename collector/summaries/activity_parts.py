"""Adds to the parts of a step what activities and other spans take, in steps and between them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from .op_classes import INPUT, LAUNCH, PYTHON
from .parts import BETWEEN, FROM_SPANS, TRACING, UNEXPLAINED, UNRECORDED, Recording, Sums
from .step_cut import AFTER, BEFORE, Interval, overlaps, union, without
from .step_records import Activity, OtherSpan, Period, TimedSteps

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
#: `load (train.py:12)`: a function with its line; the name of the file may have parentheses, too.
FUNCTION_AND_LINE: Final = r"(?P<function>.*?) \((?P<line>.+?:\d+)\)"
_KIND_TITLES: Final = {"evaluate": "evaluation", "test_batch": "evaluation", "predict_batch": "predict"}


def add_activities_in_steps(
    sums: Sums, recording: Recording, groups: Sequence[TimedSteps], periods: Sequence[Period], steps: int
) -> None:
    """Add the activities within steps, and subtract their time from the time without ops."""
    others = union((span.start_ns, span.end_ns) for span in recording.others)
    # Nobody knows whose activities are between other steps that were timed together.
    several = union((span.start_ns, span.end_ns) for span in recording.others if span.steps > 1)
    pauses = [period.pauses for period in periods if period.number > 1]
    own = union(each for each, others_ns in zip(pauses, overlaps(pauses, several), strict=True) if not others_ns)
    steps_ns = ((group.start_ns, group.start_ns + max(1, group.total_ns)) for group in groups)
    starts = union([*steps_ns, *without(own, others)])
    by_name: Counter[tuple[str, str]] = Counter()
    in_steps = [activity for activity in recording.activities if activity.in_step]
    first_ns = [(activity.start_ns, activity.start_ns + 1) for activity in in_steps]
    for activity, is_within in zip(in_steps, overlaps(first_ns, starts), strict=True):
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


def name_and_line(title: str) -> tuple[str, str]:
    """Return the name and the line in a title such as `fetch in load (train.py:12)`.

    They are the title itself and '' if it has no line.
    """
    match = re.fullmatch(FUNCTION_AND_LINE, title)
    return (match["function"], match["line"]) if match else (title, "")


def add_gaps(sums: Sums, recording: Recording, periods: Sequence[Period], gap_ns: float) -> None:
    """Add what takes the time between steps. Time in no span is Python, or is not explained."""
    steps = sum(period.number for period in periods)
    found: dict[tuple[str, str], float] = defaultdict(float)
    gaps = union(period.pauses for period in periods)
    spans = _outermost_spans(recording.others)
    activities = _outside_of(spans, _without_marks_of_steps(recording))
    for activity, within_ns in _within(activities, gaps):
        title = _activity_title(activity.category, activity.name)
        found[_PART_OF_CATEGORY.get(activity.category, BETWEEN), title] += within_ns
    outer = union(_span_of(activity) for activity in activities if activity.entries == 1)
    span_times = overlaps([interval for _, interval in spans], without(gaps, outer))
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
    starts = [(group.measured_start.ns, group.measured_start.ns + 1) for group in recording.steps]
    # Only some starts of steps and of marks are known.
    known = len(starts) / sum(group.steps for group in recording.steps)
    firsts = [(each.start_ns, each.start_ns + (each.end_ns - each.start_ns) // each.entries) for each in activities]
    balance: dict[tuple[str, str], float] = defaultdict(float)  # above 0 if most of these marks contain steps
    for activity, has_start in zip(activities, overlaps(firsts, union(starts)), strict=True):
        if activity.category in _MARKS and activity.own_ns > 0:
            balance[activity.category, activity.name] += bool(has_start) - known / 2
    return [activity for activity in activities if balance[activity.category, activity.name] <= 0]


def _within(activities: Sequence[Activity], gaps: Sequence[Interval]) -> Iterator[tuple[Activity, float]]:
    """Yield the activities in ``gaps``, with their own time there.

    Activities that share an entry may lie in several gaps. They count if the first of them lies in
    a gap.
    """
    for activity, gap_ns in zip(activities, overlaps([_span_of(each) for each in activities], gaps), strict=True):
        if gap_ns:
            length_ns = max(1, activity.end_ns - activity.start_ns)
            yield activity, activity.own_ns * (gap_ns / length_ns if activity.entries == 1 else 1.0)


def _span_of(activity: Activity) -> Interval:
    return activity.start_ns, activity.end_ns if activity.entries == 1 else activity.start_ns + 1


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
    within = overlaps(starts, [interval for _, interval in spans])
    return [activity for activity, is_within in zip(activities, within, strict=True) if not is_within]
