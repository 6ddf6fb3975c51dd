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
_WARM_UP: Final = 5
#: An outlier takes this many times the median step; minimum share of the time in outliers that is
#: reported.
OUTLIER_FACTOR: Final = 3.0
SHARE_MIN: Final = 0.1
#: The host is the likely reason if other processes use at least the first share of its CPUs, and at
#: least the second share of its CPUs is busy.
OTHERS_SHARE_MIN: Final = 0.25
BUSY_SHARE_MIN: Final = 0.85
_AT_INTERVALS: Final = "see what happens in them: checkpoints, evaluation, summaries, logging"
_TODO: Final = (
    "see what happens in them: inputs of different shapes or sizes, retraced functions, other load on the host"
    " (tfprof host)"
)
_BUSY: Final = (
    "measure again on a quiet host, or reserve CPUs for the job (taskset, cgroups); tfprof host shows the load. If"
    " steps are still uneven, the cause is in the job: inputs of different shapes or sizes, retraced functions"
)
#: Minimum share of equal distances between outliers that makes them regular.
_REGULAR_SHARE_MIN: Final = 0.6


def check(evidence: Evidence) -> Sequence[Report]:
    """Report the time in outliers, their interval, and whether the host was busy meanwhile."""
    steps = _alike([one for one in evidence.timed if one.usual])[_WARM_UP:]
    number = sum(one.runs for one in steps)
    if number < STEPS_MIN:
        return []
    typical = _median(steps, number)
    longest = [one for one in steps if _mean(one) >= OUTLIER_FACTOR * typical]
    extra = sum(one.total_ns - one.runs * typical for one in longest)
    share = extra / sum(one.total_ns for one in steps)
    if len(longest) < 2 or share < SHARE_MIN:
        return []
    most = max(map(_mean, longest))
    every = _interval([one.ordinal for one in longest if _mean(one) >= most / 2])
    slow = sum(one.runs for one in longest)
    text = (
        f"{count(slow)} of {count(number)} steps take {OUTLIER_FACTOR:.0f} times as long as the median one"
        f" ({duration(typical)}) or more, up to {duration(most)}: {percent(share)} of the time in steps."
    )
    numbers = {"slow_steps": slow, "steps": number, "median_ns": typical, "share": share, "every": every or 0}
    if every:
        return [Report(f"{text} They come every {count(every)} steps.", numbers, _AT_INTERVALS)]
    others = _others(evidence.load, longest)
    if others is None:
        return [Report(text, numbers, _TODO)]
    cores = evidence.load[0].cpus
    text += (
        f" The likely reason is the host, not the job: while they ran, other processes used {others:.1f}"
        f" of its {cores} CPUs, and none was free."
    )
    return [Report(text, numbers | {"other_cores": others, "cpus": cores}, _BUSY)]


def _alike(steps: Sequence[TimedSteps]) -> list[TimedSteps]:
    """Return the steps of the call with most of the time; other calls have other durations."""
    sums: Counter[int] = Counter()
    for one in steps:
        sums[one.key] += one.total_ns
    main = max(sums, key=sums.__getitem__, default=None)
    return [one for one in steps if one.key == main]


def _others(load: Sequence[Load], steps: Sequence[TimedSteps]) -> float | None:
    """Return the number of cores that other processes used while ``steps`` ran.

    None if it is unknown, or if the job did not lack these cores. Samples are a second apart; each
    is weighted by its share of the steps' time.
    """
    weighted = [(_shared(one, steps), one) for one in load]
    whole = sum(weight for weight, _ in weighted)
    if not whole:
        return None
    others, own = (
        sum(weight * cores for weight, cores in part) / whole
        for part in (
            [(weight, one.others) for weight, one in weighted],
            [(weight, one.own) for weight, one in weighted],
        )
    )
    cores = load[0].cpus
    return others if others >= OTHERS_SHARE_MIN * cores and others + own >= BUSY_SHARE_MIN * cores else None


def _shared(one: Load, steps: Sequence[TimedSteps]) -> int:
    """Return the part of the time of ``steps``, in ns, that lies between two samples."""
    return sum(
        max(0, min(one.end_ns, step.start_ns + step.total_ns) - max(one.start_ns, step.start_ns)) for step in steps
    )


def _mean(one: TimedSteps) -> float:
    return one.total_ns / one.runs


def _median(steps: Sequence[TimedSteps], number: int) -> float:
    """Return the median duration; steps timed together count with their mean."""
    before = 0
    for one in sorted(steps, key=_mean):
        before += one.runs
        if 2 * before >= number:
            return _mean(one)
    raise AssertionError(number)


def _interval(ordinals: Sequence[int]) -> int | None:
    """Return the most common distance between neighbors in ``ordinals``.

    None unless enough distances are within one step of it.
    """
    if len(ordinals) < 3:
        return None
    distances = Counter(after - before for before, after in pairwise(ordinals))
    every, _ = distances.most_common(1)[0]
    alike = sum(times for distance, times in distances.items() if abs(distance - every) <= 1)
    return every if every > 1 and alike >= _REGULAR_SHARE_MIN * distances.total() else None
