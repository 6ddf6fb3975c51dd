"""Finds the step from which on a job's main kind of step takes longer, or the pauses after it."""

from collections.abc import Collection, Sequence
from typing import Final

from ...formats import layout
from ..advice.evidence import StepShift
from ..advice.main_call import steps_of_main_call
from ..advice.slower import shift_text
from ..alerts.alert import PAUSES, SLOWER
from ..store.protocols import JobReader
from ..summaries.kinds import KINDS_BY_NAME
from ..summaries.part_times import median_step_ns
from ..summaries.series import level_shift
from ..summaries.step_records import TimedSteps, periods
from .alerts import changed_ops
from .kind_selection import includes
from .recorded_steps import timed_steps

#: Each side of a shift must have at least this share of the time of all steps. A few slow steps at
#: the beginning or at the end are no lasting increase.
_SIDE_SHARE_MIN: Final = 0.05
#: An alert is about a shift if at most this time lies between the shift and the alert's first slow
#: step (ns).
_ALERT_NS: Final = 10 * layout.SECOND_NS


def shifts(job: JobReader, kind: str, steps: Sequence[TimedSteps]) -> tuple[StepShift | None, StepShift | None]:
    """Return the shift in the times of ``steps``, or else that of the pauses after them.

    If both have become longer, the one that explains most of the increase counts.
    """
    of_steps, of_pauses = step_shift(job, kind, steps), pause_shift(job, kind, steps)
    if of_steps is not None and of_pauses is not None:
        increase_ns = of_pauses.now_ns - of_pauses.before_ns
        if 2 * (of_steps.now_ns - of_steps.before_ns) >= increase_ns:
            of_pauses = None
    return (of_steps, None) if of_pauses is None else (None, of_pauses)


def shift_note(job: JobReader, kinds: Collection[int] | None = None) -> str | None:
    """Return a sentence about the increase of step times, and how to show the steps since then.

    None if the steps of the main kind did not become slower, or if it is none of ``kinds``.
    """
    kind, steps = timed_steps(job, job.table("spans"))
    shift, _ = shifts(job, kind, steps)
    if shift is None or not (kinds is None or includes(kinds, KINDS_BY_NAME[kind])):
        return None
    return f"{shift_text(shift, kind)} Only these: --steps {shift.step}-{steps[-1].last}"


def step_shift(job: JobReader, kind: str, steps: Sequence[TimedSteps]) -> StepShift | None:
    """Return the shift in the times of ``steps``, which are those of the main kind, or None."""
    normal_steps = steps_of_main_call([group for group in steps if group.is_normal])
    shift = level_shift([group.total_ns / group.steps for group in normal_steps])
    if shift is None:
        return None
    first, key = normal_steps[shift.first].measured_start, normal_steps[shift.first].key
    if _is_brief(steps, first.ns):
        return None
    return StepShift(
        first.step,
        key,
        first.ns,
        median_step_ns(normal_steps[: shift.first]),
        median_step_ns(normal_steps[shift.first :]),
        shift.is_gradual,
        _has_alert(job, SLOWER, kind, first.ns),
        changed_ops(job, KINDS_BY_NAME[kind], key, first.step).ops,
    )


def _is_brief(steps: Sequence[TimedSteps], start_ns: int) -> bool:
    """Return whether one side of a shift at ``start_ns`` is short beside the time of ``steps``."""
    first_ns, end_ns = steps[0].start_ns, steps[-1].start_ns + steps[-1].total_ns
    return min(start_ns - first_ns, end_ns - start_ns) < _SIDE_SHARE_MIN * (end_ns - first_ns)


def _has_alert(job: JobReader, slug: str, kind: str, start_ns: int) -> bool:
    return any(
        alert["slug"] == slug
        and alert["kind"] == KINDS_BY_NAME[kind]
        and abs(alert["since_ns"] - start_ns) <= _ALERT_NS
        for alert in job.table("alerts", ["slug", "kind", "since_ns"]).to_pylist()
    )


def pause_shift(job: JobReader, kind: str, steps: Sequence[TimedSteps]) -> StepShift | None:
    """Return the shift in the times from the start of a step to the next start, or None.

    ``steps`` are those of the main kind.
    """
    groups = steps_of_main_call([group for group in steps if group.is_normal])
    if len({group.key for group in steps}) > 1:
        # The times of sampled steps are means over all calls, the other ones those of this call.
        sampled = sum(group.steps for group in groups if group.is_sampled)
        are_sampled = 2 * sampled > sum(group.steps for group in groups)
        groups = [group for group in groups if group.is_sampled == are_sampled]
    ordinals = {group.ordinal for group in groups}
    found = [period for period in periods(steps) if period.steps.ordinal in ordinals]
    shift = level_shift([period.ns for period in found])
    if shift is None:
        return None
    first = found[shift.first].first
    if _is_brief(steps, first.ns):
        return None
    return StepShift(
        first.step,
        groups[0].key,
        first.ns,
        shift.before_ns,
        shift.now_ns,
        shift.is_gradual,
        _has_alert(job, PAUSES, kind, first.ns),
        of_pauses=True,
    )
