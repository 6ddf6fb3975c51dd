"""Decides which steps of one kind are timed: all long ones, a sample of short ones."""

from __future__ import annotations

from ...formats.policy import DEFAULT, MILLION

BUDGET_DIVISOR = 4  # timing may use 1/BUDGET_DIVISOR of what counting leaves of the budget
FIRST_TIMED = 256  # first steps of a kind, which are all timed, so that a short job shows all of its calls
INTERVAL_MAX = 256  # one in INTERVAL_MAX of the shortest steps is timed, on average
#: Timing a step costs this many times our measured work, which is the work after the step. Our work
#: before the step and the cache misses that we cause in TensorFlow are not measured.
TIMING_FACTOR = 3
_TIMING_NS = 3000  # assumed cost of timing a step until it is measured, ns
_TIMING_MIN_NS = 1000


class Sampling(object):
    """Chooses how many steps of one kind are only counted after a timed one.

    One in ``_interval`` steps is timed, on average. The chosen number varies, so that timed steps
    do not coincide with a period of the job. ``_interval`` is at most a sixteenth of the steps so
    far. It at most doubles from one timed step to the next, and falls at once if one is longer.
    """

    __slots__ = ("_counted_ns", "_interval", "_mean", "_timing_ns")

    def __init__(self, counted_ns: int) -> None:
        self._counted_ns = counted_ns  # cost of counting a step
        self._interval = 1
        self._mean = 0  # mean duration of a step, ns
        self._timing_ns = _TIMING_NS  # usual cost of timing a step

    def cost(self, own_ns: int, counted: int) -> int:
        """Return the cost (ns) of a timed step and of ``counted`` steps without a time.

        ``own_ns`` is the time that the timing took. Its usual value follows the median, not the
        mean, since the timing takes far longer while another process uses the core.
        """
        usual = self._timing_ns
        self._timing_ns = max(_TIMING_MIN_NS, usual + (usual if own_ns > usual else -usual) // 16)
        return min(own_ns, 2 * usual) + counted * self._counted_ns

    def skip(self, ordinal: int, duration: int, budget: int) -> int:
        """Return how many steps are only counted after ``ordinal``; ``budget``: in millionths."""
        self._mean += (duration - self._mean) // 4 if self._mean else duration
        step_ns = max(self._mean, duration, 1)
        # What counting leaves of the budget for each step, in millionths of a nanosecond.
        available = max(1, (budget or DEFAULT.budget) * step_ns - self._counted_ns * MILLION)
        affordable_interval = -(-self._timing_ns * BUDGET_DIVISOR * MILLION // available)  # rounded up
        interval_max = min(INTERVAL_MAX, 2 * self._interval, ordinal // 16 if ordinal >= FIRST_TIMED else 1)
        self._interval = max(1, min(affordable_interval, interval_max))
        half = self._interval // 2
        return self._interval - half - 1 + (ordinal * 2654435761 >> 8) % (2 * half + 1)
