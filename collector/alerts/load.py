"""Processor load of a host or a job over time."""

from collections import deque
from typing import Final

#: Maximum number of samples, one per second.
_KEPT: Final = 180


class CpuSeconds:
    """Samples of a counter of consumed processor seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, float]] = deque(maxlen=_KEPT)

    def add(self, t_ns: int, cpu_s: float) -> None:
        """Add a sample; ignore it if it is not newer than the last one."""
        if not self._samples or t_ns > self._samples[-1][0]:
            self._samples.append((t_ns, cpu_s))

    def cores(self, from_ns: int, to_ns: int | None = None) -> float | None:
        """Return the mean number of busy processors from ``from_ns`` to ``to_ns``.

        The default of ``to_ns`` is the time of the last sample. None if fewer than two samples lie
        in this time.
        """
        within = [one for one in self._samples if from_ns <= one[0] and (to_ns is None or one[0] <= to_ns)]
        if len(within) < 2:
            return None
        (first_ns, first_s), (last_ns, last_s) = within[0], within[-1]
        return max(0.0, last_s - first_s) * 1e9 / (last_ns - first_ns)
