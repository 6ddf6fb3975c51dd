"""Page faults of steps: after a trace, steps may take more of them than before.

The positions of small buffers decide whether the large buffers of a step fit into the allocator's
memory, or are returned to the system and requested again. The profiler's allocations in a traced
step move the small buffers.
"""

from __future__ import annotations

from collections import deque

from ..guard import raised_by_job

try:
    import resource
except ImportError as error:  # in an interpreter built without this module
    if raised_by_job(error):
        raise
    resource = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable

SETTLING_STEPS = 2  # steps after a trace that always take more page faults: memory was returned when it ended
COMPARED_STEPS = 4  # the next steps, which are compared with those before the trace
FAULTS_HISTORY = 9  # maximum number of steps with stored page faults, before a trace and again after it


def fault_count() -> int:
    """Return the minor page faults of this process so far; 0 where they are unknown."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource is not None else 0


def peak_kib() -> int:
    """Return the peak resident size of this process in KiB; 0 where it is unknown."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource is not None else 0


class PageFaultMonitor(object):
    """Compares the page faults of steps after a trace with those before.

    ``count`` returns the faults so far. ``note_begin`` is called at the start of each step around a
    trace. ``is_comparing``: the comparison after a trace is still pending.
    """

    __slots__ = ("_after", "_before", "_count", "_last_begin", "_last_unusual_step", "is_comparing")

    def __init__(self, count: Callable[[], int] = fault_count) -> None:
        self.is_comparing = False
        self._count = count
        self._before: deque[int] = deque(maxlen=FAULTS_HISTORY)  # faults per step before the trace
        self._after: deque[int] = deque(maxlen=FAULTS_HISTORY)
        self._last_begin = (0, 0)  # the last step that began, and the count at its start
        self._last_unusual_step = 1  # the last step whose faults are not compared; step 1 compiles

    def note_begin(self, ordinal: int) -> None:
        """Record that step ``ordinal`` begins."""
        count = self._count()
        (last, last_count), self._last_begin = self._last_begin, (ordinal, count)
        if self._last_unusual_step < last < ordinal:
            (self._after if self.is_comparing else self._before).append((count - last_count) // (ordinal - last))

    def note_trace(self, ordinal: int) -> None:
        """Record that step ``ordinal``, which has begun, is traced."""
        self.is_comparing = bool(self._before)
        self._last_unusual_step = ordinal + SETTLING_STEPS
        self._after.clear()

    def rise(self) -> int | None:
        """Return the additional faults per step after the trace; None while unknown."""
        return median(self._after) - median(self._before) if len(self._after) >= COMPARED_STEPS else None

    def accept(self) -> None:
        """Use the steps after the trace as the new baseline."""
        self.is_comparing = False
        self._before, self._after = self._after, deque(maxlen=FAULTS_HISTORY)


def median(values: Iterable[int]) -> int:
    """Return the median of ``values``, the upper one of two middle values."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
