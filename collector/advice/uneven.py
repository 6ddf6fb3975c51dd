"""Whether some steps take far longer than others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from ..numbers import count, duration, percent
from ..summaries.op_classes import INPUT, PYTHON
from ..summaries.part_times import median_step_ns
from ..summaries.parts import TRACING, Breakdown
from ..summaries.step_records import TimedSteps
from .cpu_use import cpu_use, is_due_to_host
from .evidence import Evidence
from .input_bound import has_slow_first_batches
from .main_call import share_in_steps, steps_of_main_call
from .python_parts import GARBAGE
from .report import Report
from .starved import are_steps_held_up

#: Minimum number of steps, after those of the warm-up.
STEPS_MIN: Final = 50
_WARM_UP_STEPS: Final = 5
#: Minimum duration of an outlier, as a multiple of the median duration.
OUTLIER_FACTOR: Final = 3.0
#: Minimum share of the time in steps that outliers take beyond the median duration.
SHARE_MIN: Final = 0.1
_REMEDY_AT_INTERVALS: Final = "see what happens in them: checkpoints, evaluation, summaries, logging"
_REMEDY: Final = (
    "see what happens in them: inputs of different shapes or sizes, retraced functions, garbage collection, other load"
    " on the host (tfprof host)"
)
_BUSY_HOST: Final = (
    "Other processes compete for the host's CPUs in these steps and in the others, so this need not be the job's doing."
)
_REMEDY_ON_BUSY_HOST: Final = (
    "measure again on a quiet host, or reserve CPUs for the job (taskset, cgroups); tfprof host shows the load. If"
    " steps are still uneven, the cause is in the job: inputs of different shapes or sizes, retraced functions"
)
#: Outliers are regular if at least this share of the distances between them differs by at most one
#: step from the most common distance.
_REGULAR_SHARE_MIN: Final = 0.6


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the time in outliers, their interval, and whether the host was busy meanwhile.

    If steps take longer from some step on, the job waits for CPUs, or the first steps of epochs
    wait for input, that is another finding.
    """
    if evidence.shift is not None or are_steps_held_up(evidence) or has_slow_first_batches(evidence.breakdown):
        return []
    all_steps = steps_of_main_call([group for group in evidence.timed_steps if group.is_normal])
    steps = all_steps[_WARM_UP_STEPS:]
    step_count = sum(group.steps for group in steps)
    if step_count < STEPS_MIN:
        return []
    median_ns = median_step_ns(all_steps)  # as other screens have it
    if not median_ns:
        return []
    outliers = [group for group in steps if _mean(group) >= OUTLIER_FACTOR * median_ns]
    extra_ns = sum(group.total_ns - group.steps * median_ns for group in outliers)
    extra_ns -= step_count * _known_ns(evidence.breakdown)
    share = extra_ns / sum(group.total_ns for group in steps)
    if len(outliers) < 2 or share < SHARE_MIN:
        return []
    slowest_ns = max(map(_mean, outliers))
    interval = _interval([group.ordinal for group in outliers if _mean(group) >= slowest_ns / 2], step_count)
    slow_count = sum(group.steps for group in outliers)
    text = (
        f"{count(slow_count)} of {count(step_count)} steps take {OUTLIER_FACTOR:.0f} times as long as the median one"
        f" ({duration(median_ns)}) or more, up to {duration(slowest_ns)}: {percent(share)} of the time in steps."
    )
    numbers = {"slow_steps": slow_count, "steps": step_count, "median_ns": median_ns, "share": share}
    saving = share * share_in_steps(evidence)
    if interval:
        text += f" They come every {count(interval)} steps."
        return [Report(text, {**numbers, "every": interval}, _REMEDY_AT_INTERVALS, saving=saving)]
    others = [group for group in steps if _mean(group) < OUTLIER_FACTOR * median_ns]
    return [_with_cause(evidence, Report(text, numbers, _REMEDY, saving=saving), outliers, others)]


def _with_cause(
    evidence: Evidence, report: Report, outliers: Sequence[TimedSteps], others: Sequence[TimedSteps]
) -> Report:
    """Return ``report`` with what the load of the host explains.

    On a host that is always busy it may explain everything, so the report has no remedy.
    """
    slow_use, normal_use = cpu_use(evidence.load, outliers), cpu_use(evidence.load, others)
    if slow_use is None or not slow_use.has_competition:
        return report
    if not is_due_to_host(slow_use, normal_use):
        return replace(report, text=f"{report.text} {_BUSY_HOST}", remedy="", saving=0.0)
    text = (
        f"{report.text} The likely reason is the host, not the job: while they ran, other processes used"
        f" {slow_use.other_cores:.1f} of its {slow_use.cpus} CPUs, and few were idle; during the other steps some were"
        " idle."
    )
    return replace(report, text=text, numbers={**report.numbers, **slow_use._asdict()}, remedy=_REMEDY_ON_BUSY_HOST)


def _mean(group: TimedSteps) -> float:
    return group.total_ns / group.steps


def _known_ns(parts: Breakdown | None) -> float:
    """Return the time within a step that other findings explain, which may all be in outliers."""
    if parts is None:
        return 0.0
    collections_ns = sum(ns for name, ns in parts.detail_ns(PYTHON).items() if name.startswith(GARBAGE))
    known_ns = parts.ns(TRACING) + parts.ns(INPUT) + collections_ns
    return max(0.0, known_ns - (parts.period_ns - parts.step_ns))  # some of it may be between the steps


def _interval(ordinals: Sequence[int], step_count: int) -> int | None:
    """Return the most common distance between neighbors in ``ordinals``, of ``step_count`` steps.

    None if it is 1, if there are fewer than three ordinals, if the ordinals are not regular
    (_REGULAR_SHARE_MIN), or if they span less than half of the steps.
    """
    if len(ordinals) < 3:
        return None
    distances = Counter(after - before for before, after in pairwise(ordinals))
    distance, _ = distances.most_common(1)[0]
    similar = sum(number for other, number in distances.items() if abs(other - distance) <= 1)
    is_regular = similar >= _REGULAR_SHARE_MIN * distances.total() and 2 * distance * len(ordinals) >= step_count
    return distance if distance > 1 and is_regular else None
