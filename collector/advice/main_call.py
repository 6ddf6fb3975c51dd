"""The steps of the main call, their median duration, and the share of the time in steps."""

from collections import Counter
from collections.abc import Sequence

from ..summaries.step_records import TimedSteps
from .evidence import Evidence


def steps_of_main_call(steps: Sequence[TimedSteps]) -> list[TimedSteps]:
    """Return the steps of the call that takes the most time; other calls have other durations."""
    sums: Counter[int] = Counter()
    for group in steps:
        sums[group.key] += group.total_ns
    main = max(sums, key=sums.__getitem__, default=None)
    return [group for group in steps if group.key == main]


def share_in_steps(evidence: Evidence) -> float:
    """Return the share of steps in the time from the first to the last timed one; 1 if unknown."""
    if not evidence.timed_steps:
        return 1.0
    first, last = evidence.timed_steps[0], evidence.timed_steps[-1]
    total_ns = last.start_ns + last.total_ns - first.start_ns
    return min(1.0, sum(step.total_ns for step in evidence.timed_steps) / total_ns) if total_ns > 0 else 1.0
