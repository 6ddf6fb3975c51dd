"""Step times of one kind and key by second, and the detection of changes in them.

The times are those of the steps, or those from the start of a step to the next start.
"""

from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from ...formats.layout import SECOND_NS
from ..records import StepStart

#: Number of recent seconds that are compared with the baseline before them.
RECENT: Final = 5
#: Maximum and minimum number of seconds in the baseline.
BASELINE: Final = 120
BASELINE_MIN: Final = 20
#: Ignored seconds at the start of a series, in which caches and allocators warm up.
WARM_UP: Final = 3
#: Minimum factors of a shift: compared with the median step time of the baseline, and compared with
#: that of its slowest RECENT seconds.
SHIFT_FACTOR: Final = 1.25
_BASELINE_FACTOR: Final = 1.1
#: Seconds after which a shift without an alert ends. Its slower steps then count as usual.
PENDING_S: Final = 60
#: Quantile of the baseline that all recent seconds but one must exceed.
_QUANTILE: Final = 0.9
#: Minimum duration of a spike: a multiple of the usual step time, a multiple of the longest step so
#: far, and an absolute time (ns).
SPIKE_FACTOR: Final = 10.0
_SPIKE_LONGEST_FACTOR: Final = 3.0
SPIKE_NS: Final = SECOND_NS // 2
#: Interval between computations of the usual time (seconds with steps).
_USUAL_INTERVAL: Final = 10


class Second(NamedTuple):
    """The steps that ended in one second.

    ``number``: Unix time in seconds. ``mean_ns`` and ``min_ns``: mean and minimum time of the
    steps. ``step_count``: number of the steps. ``first``: the first start that was measured.
    """

    number: int
    mean_ns: float
    min_ns: int
    step_count: int
    first: StepStart


class Shift(NamedTuple):
    """An increase of the step times from ``step`` on.

    This step began at ``since_ns``; the baseline began at ``from_ns``. ``before_ns`` and ``now_ns``
    are the median step times of the baseline and of the last RECENT seconds.
    """

    step: int
    since_ns: int
    before_ns: float
    now_ns: float
    from_ns: int


class Spike(NamedTuple):
    """An unusually long step.

    ``step`` and ``since_ns``: ordinal and start of the step of its entry whose start was measured.
    ``before_ns``: the usual duration. ``now_ns``: the duration of the long step.
    """

    step: int
    since_ns: int
    before_ns: float
    now_ns: float


class StepSeries:
    """The last BASELINE + RECENT seconds in which steps ended; ``total_ns``: time in all steps."""

    def __init__(self) -> None:
        self.total_ns = 0
        self._longest_ns = 0
        self._warm_up_left = WARM_UP
        self._restart()

    def _restart(self) -> None:
        self._seconds: deque[Second] = deque(maxlen=BASELINE + RECENT)
        self._medians: deque[float] = deque(maxlen=BASELINE + RECENT)
        # The fields of a Second, but with the total time (ns) instead of the mean.
        self._current_second: tuple[int, int, int, int, StepStart] | None = None
        self._usual_ns = 0.0
        self._seconds_to_usual = 0  # number of seconds with steps after which the usual time is computed again
        self._has_new_second = False
        self._current_shift: Shift | None = None

    def restart(self) -> None:
        """Drop all seconds; their last step times become the usual ones."""
        usual_ns = self._medians[-1] if self._medians else 0.0
        self._restart()
        self._usual_ns = usual_ns

    @property
    def usual_ns(self) -> float:
        """Median of the mean times of the seconds; 0 while there are too few seconds.

        It is computed once in _USUAL_INTERVAL seconds with steps.
        """
        return self._usual_ns

    def add(
        self, start: StepStart, end_ns: int, total_ns: int, count: int, min_ns: int, longest_ns: int
    ) -> Spike | None:
        """Add an entry of ``count`` steps; return the spike in it, if any.

        ``start`` is the one that was measured.
        """
        self.total_ns += total_ns
        self.close_until(end_ns)
        number, second_ns, least_ns, steps, first = self._current_second or (end_ns // SECOND_NS, 0, min_ns, 0, start)
        self._current_second = (number, second_ns + total_ns, min(least_ns, min_ns), steps + count, first)
        spike = self._spike(start, longest_ns)
        self._longest_ns = max(self._longest_ns, 0 if spike else longest_ns)
        return spike

    def _spike(self, start: StepStart, longest_ns: int) -> Spike | None:
        usual_ns = self._usual_ns
        threshold_ns = max(usual_ns * SPIKE_FACTOR, self._longest_ns * _SPIKE_LONGEST_FACTOR, SPIKE_NS)
        return Spike(*start, usual_ns, longest_ns) if usual_ns and longest_ns >= threshold_ns else None

    def close_until(self, now_ns: int) -> None:
        """Complete the current second if it ended before ``now_ns``."""
        if self._current_second and self._current_second[0] < now_ns // SECOND_NS:
            self._close_second(*self._current_second)

    def _close_second(self, number: int, total_ns: int, min_ns: int, count: int, first: StepStart) -> None:
        self._current_second = None
        if self._warm_up_left:
            self._warm_up_left -= 1
            self._longest_ns = 0
            return
        self._seconds.append(Second(number, total_ns / count, min_ns, count, first))
        self._medians.append(median(second.mean_ns for second in list(self._seconds)[-RECENT:]))
        self._has_new_second = True
        self._seconds_to_usual -= 1
        if self._seconds_to_usual <= 0 and len(self._seconds) >= BASELINE_MIN:
            self._seconds_to_usual = _USUAL_INTERVAL
            self._usual_ns = median(second.mean_ns for second in self._seconds)
        self._update_shift()

    def shift(self, now_ns: int) -> Shift | None:
        """Return the current shift at ``now_ns``, if any, at most once for each new second."""
        self.close_until(now_ns - SECOND_NS)
        has_new_second, self._has_new_second = self._has_new_second, False
        return self._current_shift if has_new_second else None

    def _update_shift(self) -> None:
        """Update the current shift.

        A shift ends when the median step time is below SHIFT_FACTOR times that of the baseline, or
        after PENDING_S.
        """
        if len(self._seconds) < BASELINE_MIN + RECENT:
            return
        recent_ns = self._medians[-1]
        if self._current_shift is not None:
            is_past = self._seconds[-1].number * SECOND_NS > self._current_shift.since_ns + PENDING_S * SECOND_NS
            holds = not is_past and recent_ns >= SHIFT_FACTOR * self._current_shift.before_ns
            self._current_shift = self._current_shift._replace(now_ns=recent_ns) if holds else None
        else:
            self._current_shift = self._new_shift(recent_ns)

    def _new_shift(self, recent_ns: float) -> Shift | None:
        """Return the shift from the baseline to the last RECENT seconds, None if there is none.

        ``recent_ns`` is the median step time of these seconds.
        """
        if recent_ns < _BASELINE_FACTOR * self._usual_ns:  # the common case: skip the expensive tests
            return None
        seconds = list(self._seconds)
        baseline, recent = seconds[:-RECENT], seconds[-RECENT:]
        baseline_ns = median(second.mean_ns for second in baseline)
        highest_median_ns = max(list(self._medians)[RECENT - 1 : -RECENT])
        if recent_ns < SHIFT_FACTOR * baseline_ns or recent_ns < _BASELINE_FACTOR * highest_median_ns:
            return None
        quantile_ns = sorted(second.mean_ns for second in baseline)[int(_QUANTILE * len(baseline))]
        if sum(second.mean_ns > quantile_ns for second in recent) < RECENT - 1:
            return None
        first_slow_second = _first_above(seconds, (baseline_ns * recent_ns) ** 0.5)
        return Shift(*first_slow_second.first, baseline_ns, recent_ns, seconds[0].number * SECOND_NS)

    def rate(self, from_ns: int, to_ns: int | None = None) -> float | None:
        """Return the steps per second from ``from_ns`` to ``to_ns``, None if there are none.

        The default of ``to_ns`` is the end of the last complete second.
        """
        first, end = from_ns // SECOND_NS, self._seconds[-1].number + 1 if to_ns is None else to_ns // SECOND_NS
        steps = sum(second.step_count for second in self._seconds if first <= second.number < end)
        return steps / (end - first) if steps else None

    def median_min_ns(self, since_ns: int) -> float:
        """Return the median time of the fastest step of each second since ``since_ns``, or 0."""
        return median([second.min_ns for second in self._seconds if second.number > since_ns // SECOND_NS] or [0])

    def medians(self, from_ns: int, since_ns: int) -> tuple[float, float] | None:
        """Return the median step times (ns) from ``from_ns`` to ``since_ns``, and since then.

        None if there are too few seconds on either side.
        """
        self.close_until(since_ns)
        first, middle = from_ns // SECOND_NS, since_ns // SECOND_NS
        times_before = [second.mean_ns for second in self._seconds if first <= second.number < middle]
        times_after = [second.mean_ns for second in self._seconds if second.number >= middle]
        if len(times_before) < RECENT or len(times_after) < RECENT // 2:
            return None
        return median(times_before), median(times_after)


def _first_above(seconds: Sequence[Second], level_ns: float) -> Second:
    """Return the first second of the last run of seconds above ``level_ns``.

    A single lower second does not end the run.
    """
    first = seconds[-1]
    for index in range(len(seconds) - 1, 0, -1):
        if seconds[index].mean_ns > level_ns:
            first = seconds[index]
        elif seconds[index - 1].mean_ns <= level_ns:
            break
    return first
