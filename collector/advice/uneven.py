"""Whether some steps take far longer than others."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..numbers import count, duration, percent
from .evidence import Evidence, Load, TimedSteps
from .report import Report

#: Minimum number of steps, after those of the warm-up.
STEPS_MIN: Final = 50
_WARM_UP_STEPS: Final = 5
#: Minimum duration of an outlier, as a multiple of the median duration.
OUTLIER_FACTOR: Final = 3.0
#: Minimum share of the time in steps that outliers take beyond the median duration.
SHARE_MIN: Final = 0.1
#: The host is the likely reason if other processes use at least the first share of its CPUs, and at
#: least the second share of its CPUs is busy.
OTHERS_SHARE_MIN: Final = 0.25
BUSY_SHARE_MIN: Final = 0.85
_REMEDY_AT_INTERVALS: Final = "see what happens in them: checkpoints, evaluation, summaries, logging"
_REMEDY: Final = (
    "see what happens in them: inputs of different shapes or sizes, retraced functions, other load on the host"
    " (tfprof host)"
)
_REMEDY_ON_BUSY_HOST: Final = (
    "measure again on a quiet host, or reserve CPUs for the job (taskset, cgroups); tfprof host shows the load. If"
    " steps are still uneven, the cause is in the job: inputs of different shapes or sizes, retraced functions"
)
#: Outliers are regular if at least this share of the distances between them differs by at most one
#: step from the most common distance.
_REGULAR_SHARE_MIN: Final = 0.6


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the time in outliers, their interval, and whether the host was busy meanwhile."""
    steps = _steps_of_main_call([group for group in evidence.timed_steps if group.is_normal])[_WARM_UP_STEPS:]
    step_count = sum(group.steps for group in steps)
    if step_count < STEPS_MIN:
        return []
    median_ns = _median(steps, step_count)
    outliers = [group for group in steps if _mean(group) >= OUTLIER_FACTOR * median_ns]
    extra_ns = sum(group.total_ns - group.steps * median_ns for group in outliers)
    share = extra_ns / sum(group.total_ns for group in steps)
    if len(outliers) < 2 or share < SHARE_MIN:
        return []
    slowest_ns = max(map(_mean, outliers))
    interval = _interval([group.ordinal for group in outliers if _mean(group) >= slowest_ns / 2])
    slow_count = sum(group.steps for group in outliers)
    text = (
        f"{count(slow_count)} of {count(step_count)} steps take {OUTLIER_FACTOR:.0f} times as long as the median one"
        f" ({duration(median_ns)}) or more, up to {duration(slowest_ns)}: {percent(share)} of the time in steps."
    )
    numbers = {
        "slow_steps": slow_count,
        "steps": step_count,
        "median_ns": median_ns,
        "share": share,
        "every": interval or 0,
    }
    if interval:
        return [Report(f"{text} They come every {count(interval)} steps.", numbers, _REMEDY_AT_INTERVALS)]
    other_cores = _other_cores(evidence.load, outliers)
    if other_cores is None:
        return [Report(text, numbers, _REMEDY)]
    cores = evidence.load[0].cpus
    text += (
        f" The likely reason is the host, not the job: while they ran, other processes used {other_cores:.1f}"
        f" of its {cores} CPUs, and few were idle."
    )
    return [Report(text, numbers | {"other_cores": other_cores, "cpus": cores}, _REMEDY_ON_BUSY_HOST)]


def _steps_of_main_call(steps: Sequence[TimedSteps]) -> list[TimedSteps]:
    """Return the steps of the call that takes the most time; other calls have other durations."""
    sums: Counter[int] = Counter()
    for group in steps:
        sums[group.key] += group.total_ns
    main = max(sums, key=sums.__getitem__, default=None)
    return [group for group in steps if group.key == main]


def _other_cores(load: Sequence[Load], steps: Sequence[TimedSteps]) -> float | None:
    """Return the number of cores that other processes used while ``steps`` ran.

    None if it is unknown, or below OTHERS_SHARE_MIN, or if the host was less busy than
    BUSY_SHARE_MIN. Each interval of the load is weighted by the time of ``steps`` in it.
    """
    weighted = [(_overlap_ns(interval, steps), interval) for interval in load]
    total_weight = sum(weight for weight, _ in weighted)
    if not total_weight:
        return None
    other_cores, own_cores = (
        sum(weight * cores for weight, cores in pairs) / total_weight
        for pairs in (
            [(weight, interval.other_cores) for weight, interval in weighted],
            [(weight, interval.own_cores) for weight, interval in weighted],
        )
    )
    cores = load[0].cpus
    return (
        other_cores
        if other_cores >= OTHERS_SHARE_MIN * cores and other_cores + own_cores >= BUSY_SHARE_MIN * cores
        else None
    )


def _overlap_ns(interval: Load, steps: Sequence[TimedSteps]) -> int:
    """Return the time of ``steps`` within ``interval``, in ns."""
    return sum(
        max(0, min(interval.end_ns, step.start_ns + step.total_ns) - max(interval.start_ns, step.start_ns))
        for step in steps
    )


def _mean(group: TimedSteps) -> float:
    return group.total_ns / group.steps


def _median(steps: Sequence[TimedSteps], step_count: int) -> float:
    """Return the median duration; steps timed together count with their mean."""
    cumulated_steps = 0
    for group in sorted(steps, key=_mean):
        cumulated_steps += group.steps
        if 2 * cumulated_steps >= step_count:
            return _mean(group)
    raise AssertionError(step_count)


def _interval(ordinals: Sequence[int]) -> int | None:
    """Return the most common distance between neighbors in ``ordinals``.

    None if it is 1, if there are fewer than three ordinals, or if the ordinals are not regular
    (_REGULAR_SHARE_MIN).
    """
    if len(ordinals) < 3:
        return None
    distances = Counter(after - before for before, after in pairwise(ordinals))
    distance, _ = distances.most_common(1)[0]
    similar = sum(number for other, number in distances.items() if abs(other - distance) <= 1)
    return distance if distance > 1 and similar >= _REGULAR_SHARE_MIN * distances.total() else None
