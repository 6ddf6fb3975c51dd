"""Detects a steady growth of a job's memory."""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from ...formats.layout import SECOND_NS
from ..growth import steady_growth

#: Seconds per point; the value of a point is the minimum memory in this time.
POINT_S: Final = 5
#: Ignored seconds after the first step.
WARM_UP_S: Final = 30
_POINTS_MAX: Final = 720


class GrowthThreshold(NamedTuple):
    """Minimum growth for an alert, with at least ``points`` points.

    The memory must grow by at least ``size`` bytes and by at least ``share`` of the initial memory.
    """

    points: int
    size: float
    share: float


#: Fast growth is reported early, slow growth after a longer time.
GROWTH_THRESHOLDS: Final = (GrowthThreshold(12, 256e6, 0.2), GrowthThreshold(36, 100e6, 0.1))


class Rise(NamedTuple):
    """A steady growth: its beginning (real ns), and the memory at its beginning and end (bytes)."""

    since_ns: int
    before_bytes: float
    now_bytes: float


class MemoryGrowth:
    """Detects the growth of a job's memory after the warm-up, from up to _POINTS_MAX points."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float]] = deque(maxlen=_POINTS_MAX)
        self._current_point: tuple[int, float] | None = None

    def add(self, t_ns: int, rss_bytes: float) -> None:
        """Add a sample."""
        number = t_ns // (POINT_S * SECOND_NS)
        if self._current_point is not None and number > self._current_point[0]:
            self._points.append((self._current_point[0] * POINT_S * SECOND_NS, self._current_point[1]))
            self._current_point = None
        self._current_point = (
            number,
            rss_bytes if self._current_point is None else min(rss_bytes, self._current_point[1]),
        )

    def growth(self) -> Rise | None:
        """Return the growth that is large enough for an alert, if any, and start over after it."""
        points = list(self._points)
        for threshold in GROWTH_THRESHOLDS:
            rise = _growth(points, threshold) if len(points) >= threshold.points else None
            if rise is not None:
                self._points.clear()
                return rise
        return None


def _growth(points: Sequence[tuple[int, float]], threshold: GrowthThreshold) -> Rise | None:
    growth = steady_growth([rss for _, rss in points])
    if growth is None or growth.increase < max(threshold.size, threshold.share * growth.first):
        return None
    return Rise(points[0][0], points[0][1], points[-1][1])
