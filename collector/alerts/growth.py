"""Detects a steady growth of a job's memory."""

from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

NS: Final = 1_000_000_000
#: Seconds per point; the value of a point is the minimum memory in them.
POINT_S: Final = 5
#: Ignored seconds after the first step.
WARM_UP_S: Final = 30
_POINTS_MAX: Final = 720
#: Minimum share of the growth by which the median of each third of the points exceeds that of the third before.
_STEADY: Final = 0.25


class Least(NamedTuple):
    """Minimum growth over ``points`` points: ``size`` in bytes, and ``share`` of the initial memory."""

    points: int
    size: float
    share: float


#: Fast growth is reported early, slow growth after a longer time.
LEAST: Final = (Least(12, 256e6, 0.2), Least(36, 100e6, 0.1))


class Growth(NamedTuple):
    """A steady growth: its beginning (real ns), and the memory at its beginning and end (bytes)."""

    since_ns: int
    before_bytes: float
    now_bytes: float


class MemoryGrowth:
    """The memory of a job's processes since its steps began."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float]] = deque(maxlen=_POINTS_MAX)
        self._open: tuple[int, float] | None = None

    def add(self, t_ns: int, rss_bytes: float) -> None:
        """Add a sample."""
        number = t_ns // (POINT_S * NS)
        if self._open is not None and number > self._open[0]:
            self._points.append((self._open[0] * POINT_S * NS, self._open[1]))
            self._open = None
        self._open = (number, rss_bytes if self._open is None else min(rss_bytes, self._open[1]))

    def growth(self) -> Growth | None:
        """Return the growth that is large enough for an alert, if any, and start over after it."""
        points = list(self._points)
        for least in LEAST:
            found = _growth(points, least) if len(points) >= least.points else None
            if found is not None:
                self._points.clear()
                return found
        return None


def _growth(points: Sequence[tuple[int, float]], least: Least) -> Growth | None:
    third = len(points) // 3
    parts = points[:third], points[third : 2 * third], points[2 * third :]
    first, second, last = (median(rss for _, rss in part) for part in parts)
    growth = last - first
    is_steady = second - first > growth * _STEADY and last - second > growth * _STEADY
    if not is_steady or growth < max(least.size, least.share * first):
        return None
    return Growth(points[0][0], points[0][1], points[-1][1])
