"""Page faults of steps: after a trace, a job may have more of them than before.

The positions of small buffers decide whether the large buffers of a step fit into the allocator's
memory, or are returned to the system and requested again. The profiler's allocations in a traced
step move the small buffers.
"""

from __future__ import annotations

from collections import deque

from ..guard import raised_by_job

try:
    import resource
except ImportError as error:  # an interpreter built without it
    if raised_by_job(error):
        raise
    resource = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable

SETTLE = 2  # steps after a trace that always take more page faults: memory was returned when it ended
AFTER = 4  # the next steps, which are compared with those before the trace
FAULTS_HISTORY = 9


def fault_count() -> int:
    """Return the minor page faults of this process so far; 0 where they are unknown."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource is not None else 0


def peak_kib() -> int:
    """Return the peak resident size of this process in KiB; 0 where it is unknown."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource is not None else 0


class PageFaultMonitor(object):
    """Compares the page faults of steps after a trace with those before.

    ``count`` returns the faults so far. ``begin`` is called when each step around a trace begins.
    ``watching``: the comparison after a trace is still pending.
    """

    __slots__ = ("_after", "_at", "_before", "_count", "_settled", "watching")

    def __init__(self, count: Callable[[], int] = fault_count) -> None:
        self.watching = False
        self._count = count
        self._before: deque[int] = deque(maxlen=FAULTS_HISTORY)  # faults per step
        self._after: deque[int] = deque(maxlen=FAULTS_HISTORY)
        self._at = (0, 0)  # the last step, and the count at its start
        self._settled = 1  # the last step with unusual faults: the first one compiles

    def begin(self, ordinal: int) -> None:
        """Record that step ``ordinal`` begins."""
        count = self._count()
        (last, then), self._at = self._at, (ordinal, count)
        if self._settled < last < ordinal:
            (self._after if self.watching else self._before).append((count - then) // (ordinal - last))

    def trace(self, ordinal: int) -> None:
        """Record that step ``ordinal``, which has begun, is traced."""
        self.watching = bool(self._before)
        self._settled = ordinal + SETTLE
        self._after.clear()

    def rise(self) -> int | None:
        """Return the additional faults per step after the trace; None while unknown."""
        return median(self._after) - median(self._before) if len(self._after) >= AFTER else None

    def accept(self) -> None:
        """Use the steps after the trace as the new baseline."""
        self.watching = False
        self._before, self._after = self._after, deque(maxlen=FAULTS_HISTORY)


def median(values: Iterable[int]) -> int:
    """Return the median of ``values``, the upper one of two middle values."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
