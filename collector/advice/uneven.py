"""Whether some steps take far longer than others."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..numbers import count, duration, percent
from .evidence import Evidence, Load, Timed
from .report import Report

#: Minimum number of steps, after the warm-up steps.
STEPS: Final = 50
_WARM_UP: Final = 5
#: A step this many times as long as the median one is an outlier; all of them together are worth a word from this share of the time on.
OUTLIER: Final = 3.0
WORTH: Final = 0.1
#: Share of the host's CPUs that other processes use, and that are busy, from which on the host is called the reason.
OTHERS: Final = 0.25
FULL: Final = 0.85
_AT_INTERVALS: Final = "see what happens in them: checkpoints, evaluation, summaries, logging"
_TODO: Final = "see what happens in them: inputs of other shapes or sizes, functions traced anew, other load on the host (tfprof host)"
_BUSY: Final = (
    "measure again on a quiet host, or give the job CPUs of its own (taskset, cgroups); tfprof host shows its load. What is uneven"
    " then, too, is the job's own: inputs of other shapes or sizes, functions traced anew"
)
#: Share of the distances between outliers that are alike where they come at regular intervals.
_REGULAR: Final = 0.6


def check(evidence: Evidence) -> Sequence[Report]:
    """Say how much time the longest steps take from the others, at which intervals they come, and whether the host was busy then."""
    steps = _alike([one for one in evidence.timed if one.usual])[_WARM_UP:]
    number = sum(one.runs for one in steps)
    if number < STEPS:
        return []
    typical = _median(steps, number)
    longest = [one for one in steps if _mean(one) >= OUTLIER * typical]
    extra = sum(one.total_ns - one.runs * typical for one in longest)
    share = extra / sum(one.total_ns for one in steps)
    if len(longest) < 2 or share < WORTH:
        return []
    most = max(map(_mean, longest))
    every = _interval([one.ordinal for one in longest if _mean(one) >= most / 2])
    slow = sum(one.runs for one in longest)
    text = (
        f"{count(slow)} of {count(number)} steps take {OUTLIER:.0f} times as long as the median one ({duration(typical)}) or more,"
        f" up to {duration(most)}: {percent(share)} of the time in steps."
    )
    numbers = {"slow_steps": slow, "steps": number, "median_ns": typical, "share": share, "every": every or 0}
    if every:
        return [Report(f"{text} They come every {count(every)} steps.", numbers, _AT_INTERVALS)]
    others = _others(evidence.load, longest)
    if others is None:
        return [Report(text, numbers, _TODO)]
    cores = evidence.load[0].cpus
    text += (
        f" The likely reason is the host, not the job: while they ran, other processes used {others:.1f} of its {cores} CPUs,"
        " and none was free."
    )
    return [Report(text, numbers | {"other_cores": others, "cpus": cores}, _BUSY)]


def _alike(steps: Sequence[Timed]) -> list[Timed]:
    """Return the steps that do what takes most of the time: others take as long as they do."""
    sums: Counter[int] = Counter()
    for one in steps:
        sums[one.key] += one.total_ns
    return [one for one in steps if one.key == sums.most_common(1)[0][0]]


def _others(load: Sequence[Load], steps: Sequence[Timed]) -> float | None:
    """Return how many cores other processes used while ``steps`` ran, where these kept the job from some; else None.

    Samples are taken once a second: each counts by how much of the steps' time lies in it.
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
    return others if others >= OTHERS * cores and others + own >= FULL * cores else None


def _shared(one: Load, steps: Sequence[Timed]) -> int:
    """Return how much of the time of ``steps``, in ns, lies between two samples."""
    return sum(
        max(0, min(one.end_ns, step.start_ns + step.total_ns) - max(one.start_ns, step.start_ns)) for step in steps
    )


def _mean(one: Timed) -> float:
    return one.total_ns / one.runs


def _median(steps: Sequence[Timed], number: int) -> float:
    """Return the median duration, those timed together each taken to last as long as the others."""
    before = 0
    for one in sorted(steps, key=_mean):
        before += one.runs
        if 2 * before >= number:
            return _mean(one)
    raise AssertionError(number)


def _interval(ordinals: Sequence[int]) -> int | None:
    """Return the distance that most neighbours have, give or take one; None where there is none."""
    if len(ordinals) < 3:
        return None
    distances = Counter(after - before for before, after in pairwise(ordinals))
    every, _ = distances.most_common(1)[0]
    alike = sum(times for distance, times in distances.items() if abs(distance - every) <= 1)
    return every if every > 1 and alike >= _REGULAR * distances.total() else None
