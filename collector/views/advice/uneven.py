"""Whether some steps take far longer than others."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tfprof.collector.render.numbers import count, duration, percent
from tfprof.collector.views.advice.evidence import Evidence, Timed
from tfprof.collector.views.advice.report import Report

#: Fewer steps tell nothing; the first ones are warming up.
STEPS: Final = 50
_WARM_UP: Final = 5
#: A step this many times as long as the median one is an outlier; all of them together are worth a word from this share of the time on.
OUTLIER: Final = 3.0
WORTH: Final = 0.1
#: Share of the distances between outliers that are alike where they come at regular intervals.
_REGULAR: Final = 0.6


def check(evidence: Evidence) -> Sequence[Report]:
    """Say how much time the longest steps take from the others, and at which intervals they come."""
    steps = [one for one in evidence.timed if one.usual][_WARM_UP:]
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
        f" up to {duration(most)}: {percent(share)} of the time in steps"
    )
    return [
        Report(
            text + (f"; they come every {count(every)} steps" if every else ""),
            {"slow_steps": slow, "steps": number, "median_ns": typical, "share": share, "every": every or 0},
            "see what happens in them: checkpoints, evaluation, summaries, logging"
            if every
            else "see what happens in them: inputs of other shapes or sizes, functions traced anew, other load on the host (tfprof host)",
        )
    ]


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
