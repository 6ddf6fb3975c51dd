"""Finds the step from which on all steps take longer."""

from collections.abc import Sequence
from itertools import accumulate
from math import log
from statistics import fmean, median, quantiles
from typing import Final, NamedTuple

#: Minimum number of entries of steps before a shift and after it.
SIDE_MIN: Final = 15
#: Minimum factor between the medians of the two sides.
FACTOR_MIN: Final = 1.5
#: Later steps must take longer than this decile of the earlier steps, given by its index.
_SEPARATING_DECILE: Final = 7
#: Maximum factor by which the steps of one side may grow over time. If they grow more, the steps
#: become slower gradually.
_DRIFT_MAX: Final = 1.3


class LevelShift(NamedTuple):
    """An increase of the step times that lasts until the last step.

    ``first``: index of the first slower entry. ``before_ns`` and ``now_ns``: median step times.
    ``is_gradual``: the times grow all along, instead of at one step.
    """

    first: int
    before_ns: float
    now_ns: float
    is_gradual: bool = False


def level_shift(times_ns: Sequence[float]) -> LevelShift | None:
    """Return the shift in step times in order of time (ns, positive), None if there is none.

    The step of the shift is that where the sum of the deviations from the mean is lowest; times are
    compared by their logarithms.
    """
    if len(times_ns) < 2 * SIDE_MIN:
        return None
    logs = [log(max(1.0, time_ns)) for time_ns in times_ns]
    mean = fmean(logs)
    sums = list(accumulate(value - mean for value in logs))
    index = min(range(len(sums)), key=sums.__getitem__) + 1
    before, after = times_ns[:index], times_ns[index:]
    if min(len(before), len(after)) < SIDE_MIN:
        return None
    shift = LevelShift(index, median(before), median(after), _grows(before) or _grows(after))
    is_separate = (
        quantiles(before, n=10)[_SEPARATING_DECILE] < quantiles(after, n=10)[-1 - _SEPARATING_DECILE]
        and median(after[-SIDE_MIN:]) > (shift.before_ns * shift.now_ns) ** 0.5
    )
    return shift if is_separate and shift.now_ns >= FACTOR_MIN * shift.before_ns else None


def _grows(times_ns: Sequence[float]) -> bool:
    third = max(1, len(times_ns) // 3)
    return median(times_ns[-third:]) > _DRIFT_MAX * median(times_ns[:third])
