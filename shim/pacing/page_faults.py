"""The page faults that steps take: a trace can leave a job with more of them than it found.

A step's large buffers may fit what the C library's allocator holds, or be given back to the system and taken anew, by where
small ones happen to lie. What a profiler allocates in the midst of a step moves those: for good, until something else does.
"""

from __future__ import annotations

from collections import deque

from ..guard import theirs

try:
    import resource
except ImportError as error:  # an interpreter that was built without
    if theirs(error):
        raise
    resource = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable

SETTLE = 2  # steps after a trace that take more anyway: memory was given back when it ended
AFTER = 4  # steps then that are compared with those before it
HISTORY = 9


def fault_count() -> int:
    """Return how many page faults without I/O this process has taken so far; 0 where that is not told."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource is not None else 0


def peak_kib() -> int:
    """Return the largest size that this process has had in memory so far, in KiB; 0 where that is not told."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource is not None else 0


class PageFaultMonitor(object):
    """Compares steps after traces with those before; ``count`` returns how many faults there were so far.

    It is told of steps as they begin, of those around traces without a gap. ``watching``: a trace was begun, and whether the
    steps after it take more is not known or not accepted yet.
    """

    __slots__ = ("_after", "_at", "_before", "_count", "_settled", "watching")

    def __init__(self, count: Callable[[], int] = fault_count) -> None:
        self.watching = False
        self._count = count
        self._before: deque[int] = deque(maxlen=HISTORY)  # faults a step
        self._after: deque[int] = deque(maxlen=HISTORY)
        self._at = (0, 0)  # the step that was told of last, and the count then
        self._settled = 1  # the last step whose faults tell nothing: the first one compiles

    def begin(self, ordinal: int) -> None:
        """Take note that step ``ordinal`` begins."""
        count = self._count()
        (last, then), self._at = self._at, (ordinal, count)
        if self._settled < last < ordinal:
            (self._after if self.watching else self._before).append((count - then) // (ordinal - last))

    def trace(self, ordinal: int) -> None:
        """Take note that step ``ordinal``, which has begun, is traced."""
        self.watching = bool(self._before)
        self._settled = ordinal + SETTLE
        self._after.clear()

    def rise(self) -> int | None:
        """Return by how many faults a step those after the trace exceed those before; None as long as that is not known."""
        return median(self._after) - median(self._before) if len(self._after) >= AFTER else None

    def accept(self) -> None:
        """Let the steps after the trace be those to compare with."""
        self.watching = False
        self._before, self._after = self._after, deque(maxlen=HISTORY)


def median(values: Iterable[int]) -> int:
    """Return the middle one of ``values``, the upper of two."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
