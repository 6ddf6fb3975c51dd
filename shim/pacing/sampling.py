"""Decides which steps of one kind are timed: all long ones, a sample of short ones."""

from __future__ import annotations

from ...formats import layout
from ...formats.policy import DEFAULT, MILLION

BUDGET_DIVISOR = 4  # timing may use 1/BUDGET_DIVISOR of what counting leaves of the budget
FIRST_TIMED = 256  # first steps of a kind, which are all timed, so that a short job shows all of its calls
INTERVAL_MAX = 256  # one in INTERVAL_MAX of the shortest steps is timed, on average
MARGIN = 8  # steps before the next trace that are all timed, since other threads take ordinals, too
MARGIN_DIVISOR = 4  # margins may increase the number of timed steps by 1/MARGIN_DIVISOR
#: Timing a step costs this many times our measured work, which is the work after the step. Our work
#: before the step and the cache misses that we cause in TensorFlow are not measured.
TIMING_FACTOR = 3
_COUNTED_NS = 200  # approximate cost of counting a step in C, ns
_LONG_COUNTED_NS = 3000  # approximate cost of counting a step of _LONG_KINDS in C, ns
_LONG_KINDS = (layout.EAGER, layout.BATCH, layout.TEST_BATCH, layout.PREDICT_BATCH)
_PYTHON_FACTOR = 5  # counting in Python takes about this many times as long
CHECK_NS = 1000  # approximate cost of a counted step that also checks for orders, ns
_TIMING_NS = 3000  # assumed cost of timing a step until it is measured, ns
_TIMING_MIN_NS = 1000


class Sampling(object):
    """Chooses how many steps of one kind are only counted after a timed one.

    One in ``_interval`` steps is timed, on average. The chosen number varies, so that timed steps
    do not coincide with a period of the job. ``_interval`` at most doubles from one timed step to
    the next, and falls at once when a timed step is longer.
    """

    __slots__ = ("_counted_ns", "_interval", "_mean", "_timing_ns")

    def __init__(self, kind: int, *, is_python: bool) -> None:
        """``is_python``: steps of ``kind`` are counted in Python."""
        counted_ns = _LONG_COUNTED_NS if kind in _LONG_KINDS else _COUNTED_NS
        self._counted_ns = counted_ns * _PYTHON_FACTOR if is_python else counted_ns
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

    @property
    def margin_interval(self) -> int:
        """Minimum number of steps from one margin to the next, 1 if all steps are timed."""
        return MARGIN * MARGIN_DIVISOR * self._interval if self._interval > 1 else 1

    def check_interval(self, budget: int) -> int:
        """Return the minimum number of steps from one check for orders to the next.

        ``budget`` is in parts per million.
        """
        return CHECK_NS * BUDGET_DIVISOR * MILLION // (budget or DEFAULT.budget) // max(self._mean, 1)

    def skip(self, ordinal: int, duration: int, budget: int) -> int:
        """Return how many steps are only counted after step ``ordinal`` of ``duration`` ns.

        ``budget`` is in parts per million.
        """
        self._mean += (duration - self._mean) // 4 if self._mean else duration
        step_ns = max(self._mean, duration, 1)
        # What counting leaves of the budget for each step, in millionths of a nanosecond.
        available = max(1, (budget or DEFAULT.budget) * step_ns - self._counted_ns * MILLION)
        affordable_interval = self._timing_ns * BUDGET_DIVISOR * MILLION // available
        self._interval = (
            max(1, min(affordable_interval, 2 * self._interval, INTERVAL_MAX)) if ordinal >= FIRST_TIMED else 1
        )
        half = self._interval // 2
        return self._interval - half - 1 + (ordinal * 2654435761 >> 8) % (2 * half + 1)
