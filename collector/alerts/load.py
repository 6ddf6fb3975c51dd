"""Processor load of a host or a job over time."""

from collections import deque
from typing import Final

#: Maximum number of samples, one per second.
_SAMPLES_MAX: Final = 180


class CpuSeconds:
    """Samples of a counter of consumed processor seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, float]] = deque(maxlen=_SAMPLES_MAX)

    def add(self, t_ns: int, cpu_s: float) -> None:
        """Add a sample; ignore it if it is not newer than the last one."""
        if not self._samples or t_ns > self._samples[-1][0]:
            self._samples.append((t_ns, cpu_s))

    def cores(self, from_ns: int, to_ns: int | None = None) -> float | None:
        """Return the mean number of busy processors from ``from_ns`` to ``to_ns``.

        The default of ``to_ns`` is the time of the last sample. None if fewer than two samples lie
        in this time.
        """
        samples = [sample for sample in self._samples if from_ns <= sample[0] and (to_ns is None or sample[0] <= to_ns)]
        if len(samples) < 2:
            return None
        (first_ns, first_s), (last_ns, last_s) = samples[0], samples[-1]
        return max(0.0, last_s - first_s) * 1e9 / (last_ns - first_ns)
