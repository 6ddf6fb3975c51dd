"""Step times as text."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from ..numbers import count, date_and_time, duration, percent, time_of_day
from ..query.job_steps import JobSteps, StepSelection
from ..summaries.kinds import range_text
from ..summaries.series import Spread
from ..summaries.steps import ALL_CALLS, StepEntry, StepGroup, Steps
from .table import Column, render
from .wrapping import wrapped

_GROUP_COLUMNS: Final = (
    Column("STEP"),
    Column("", min_width=16, preferred_width=40),
    Column("COUNT", right=True),
    *(
        Column(title, right=True, drop_priority=drop_priority)
        for title, drop_priority in {"P50": 0, "P90": 2, "P99": 5, "MIN": 4, "MAX": 3, "MEAN": 6}.items()
    ),
)
_STEP_COLUMNS: Final = (
    Column("STEP"),
    Column("NUMBER", right=True),
    Column("AT"),
    Column("TIME", right=True),
    Column(""),
)


_BY_JOB: Final = "traced by the job itself"


def _times(spread: Spread) -> list[str]:
    times = (spread.p50_ns, spread.p90_ns, spread.p99_ns, spread.min_ns, spread.max_ns, spread.mean_ns)
    return [count(spread.count), *map(duration, times)]


def _rows(group: StepGroup) -> Iterator[list[str]]:
    no_times = [""] * 6
    if group.untraced is not None or group.traced is None:
        yield [group.kind, group.call, *(_times(group.untraced) if group.untraced else ["0", *no_times])]
    if group.traced is not None:
        state = _BY_JOB if group.requested == group.traced.count else "traced"
        yield [group.kind, f"{group.call} {state}".strip(), *_times(group.traced)]
    for number, state in ((group.setup, "set up"), (group.failed, "failed")):
        if number:
            yield [group.kind, f"{group.call} {state}".strip(), count(number), *no_times]


def _listed_groups(steps: Steps) -> Iterator[StepGroup]:
    """Yield the groups; those of a kind with several calls follow the group of all its calls."""
    for name in dict.fromkeys(group.kind for group in steps.groups):
        yield from (group for group in steps.kinds if (group.kind, group.call) == (name, ALL_CALLS))
        yield from (group for group in steps.groups if group.kind == name)


def cost_text(group: StepGroup) -> str | None:
    """Return the cost of tracing a step of a group as text, None if unknown."""
    if group.cost is None:
        return None
    name = f"{group.kind} {group.call}".strip()
    ns, share, pairs = group.cost
    comparison = f"{duration(ns)} ({percent(share)}) longer than" if ns > 0 else "no longer than"
    return f"a traced {name} takes {comparison} the steps beside it (median of {count(pairs)} traced steps)"


def _mark(step: StepEntry) -> str:
    marks = (
        (step.traced, _BY_JOB if step.requested else "traced"),
        (step.failed, "failed"),
        (step.setup, "set up"),
        (step.sampled and not step.failed, "time of the last step"),
        (step.count > 1 and not step.sampled, f"mean of {step.count} steps"),
    )
    return ", ".join(word for flag, word in marks if flag)


def _step_row(step: StepEntry) -> list[str]:
    last = step.ordinal + step.count - 1
    number = str(step.ordinal) if step.count == 1 else f"{step.ordinal}-{last}"
    return [step.kind, number, time_of_day(step.start_ns), duration(step.mean_ns), _mark(step)]


def _rows_without_entry(steps: Steps, counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield a row for each kind that has some steps with an entry and some without.

    Steps without an entry were only counted, or their entries were dropped.
    """
    entry_counts: Counter[str] = Counter()
    for group in steps.groups:
        entry_counts[group.kind] += group.count
    for kind, number in entry_counts.items():
        if number < counts.get(kind, 0):
            yield [kind, "only counted", count(counts[kind] - number), *[""] * 6]


def timing_notes(steps: Steps, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each kind of which not all steps were timed.

    ``counts``: number of steps by kind.
    """
    for kind, number in steps.timed.items():
        if number < counts.get(kind, 0):
            calls = sum(group.kind == kind for group in steps.groups)
            estimate_note = "; the numbers of steps by call are estimates" if calls > 1 else ""
            yield f"{count(number)} of {count(counts[kind])} {kind} steps were timed, the others counted{estimate_note}"


def lines(job_steps: JobSteps, width: int | None) -> Iterator[str]:
    """Yield the groups, the notes on timing and cost, the events, and the single steps."""
    steps, counts = job_steps.steps, job_steps.counts
    if job_steps.selection.is_partial:
        yield from wrapped(_selection_text(job_steps.selection), width)
    if steps.groups:
        rows = [row for group in _listed_groups(steps) for row in _rows(group)]
        yield from render(_GROUP_COLUMNS, [*rows, *_rows_without_entry(steps, counts)], width=width)
    costs = [text for group in steps.groups if (text := cost_text(group)) is not None]
    for text in (*timing_notes(steps, counts), *costs, *(event.line for event in job_steps.events)):
        yield from wrapped(text, width)
    if steps.listed_entries:
        yield ""
        yield from (line for text in _list_title(job_steps) for line in wrapped(text, width))
        yield from render(_STEP_COLUMNS, [_step_row(step) for step in steps.listed_entries], width=width)


def _selection_text(selection: StepSelection) -> str:
    numbers = f" {range_text(*selection.steps)}" if selection.steps else ""
    since = f" since {date_and_time(selection.since_ns)}" if selection.since_ns else ""
    return f"only steps{numbers}{since}"


def _list_title(job_steps: JobSteps) -> Iterator[str]:
    listed, number = len(job_steps.steps.listed_entries), job_steps.steps.entry_count
    if job_steps.selection.longest:
        yield f"the {listed} longest of {number:,} entries:"
    elif listed < number:
        yield f"the last {listed} of {number:,} entries (--all, --last N, --top N):"
