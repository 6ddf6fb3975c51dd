"""Finds the step from which on a job's main kind of step takes longer, or the pauses after it."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from ...formats import layout
from ..advice.evidence import StepShift
from ..advice.main_call import steps_of_main_call
from ..advice.slower import shift_text
from ..alerts.alert import SLOWER
from ..store.protocols import JobReader
from ..summaries.kinds import KINDS_BY_NAME
from ..summaries.level_shift import level_shift
from ..summaries.parts import median_step_ns
from ..summaries.step_records import TimedSteps
from .alerts import changed_ops
from .timed_steps import timed_steps

#: An alert is about a shift if its first slow step began within this time of the shift (ns).
_ALERT_NS: Final = 10 * layout.SECOND_NS


def shift_note(job: JobReader) -> str | None:
    """Return a sentence about a job whose steps became slower, and which steps show its present.

    None if they did not.
    """
    kind, steps = timed_steps(job, job.table("spans"))
    shift = step_shift(job, kind, steps)
    if shift is None:
        return None
    return f"{shift_text(shift, kind)} Only these: --steps {shift.step}-{steps[-1].last}"


def step_shift(job: JobReader, kind: str, steps: Sequence[TimedSteps]) -> StepShift | None:
    """Return the shift in the times of ``steps``, which are those of the main kind, or None."""
    normal_steps = steps_of_main_call([group for group in steps if group.is_normal])
    shift = level_shift([group.total_ns / group.steps for group in normal_steps])
    if shift is None:
        return None
    first = normal_steps[shift.first]
    alerts = job.table("alerts", ["slug", "kind", "since_ns"]).to_pylist()
    return StepShift(
        first.ordinal,
        first.key,
        first.start_ns,
        median_step_ns(normal_steps[: shift.first]),
        median_step_ns(normal_steps[shift.first :]),
        shift.is_gradual,
        any(
            alert["slug"] == SLOWER
            and alert["kind"] == KINDS_BY_NAME[kind]
            and abs(alert["since_ns"] - first.start_ns) <= _ALERT_NS
            for alert in alerts
        ),
        changed_ops(job, KINDS_BY_NAME[kind], first.key, first.ordinal).ops,
    )


def pause_shift(steps: Sequence[TimedSteps]) -> StepShift | None:
    """Return the shift in the times from the start of a step to the next start, or None.

    ``steps`` are those of the main kind, whose own times have no shift.
    """
    period_of = {
        group.ordinal: (next_group.start_ns - group.start_ns) / group.steps
        for group, next_group in pairwise(steps)
        if group.is_normal and group.last + 1 == next_group.ordinal
    }
    groups = steps_of_main_call([group for group in steps if group.ordinal in period_of])
    periods_ns = [period_of[group.ordinal] for group in groups]
    shift = level_shift(periods_ns)
    if shift is None:
        return None
    first = groups[shift.first]
    return StepShift(
        first.ordinal,
        first.key,
        first.start_ns,
        median(periods_ns[: shift.first]),
        median(periods_ns[shift.first :]),
        shift.is_gradual,
        has_alert=False,
        of_pauses=True,
    )
