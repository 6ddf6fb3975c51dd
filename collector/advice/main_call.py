"""The steps of the main call, their median duration, and the share of the time in steps."""

from collections import Counter
from collections.abc import Sequence

from ..summaries.op_classes import DEVICE
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


def share_of_step(evidence: Evidence, op_share: float, ops_ns: float) -> float:
    """Return at most which share of the time from step to step ops take.

    They have ``op_share`` of the time of all ops, and ``ops_ns`` a step, as other screens have it.
    """
    parts = evidence.breakdown
    if parts is None or parts.period_ns <= 0:
        return op_share
    return min(op_share * parts.share(DEVICE), ops_ns / parts.period_ns)
