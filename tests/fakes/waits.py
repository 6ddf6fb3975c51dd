"""Measures how long daemons keep a job waiting, on loaded machines too."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from fakes.cpu_time import cpu_s


def queued_s(*pids: int) -> float:
    """Return how long the threads of processes have waited for a processor so far, in seconds.

    It is 0 where the kernel does not measure this.
    """
    queued_ns = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # the thread has ended, or the kernel has no such file
                queued_ns += int((task / "schedstat").read_text().split()[1])
    return queued_ns / 1e9


class Waits:
    """Waits of a job for the daemons ``pids``; the longest is in `slowest_s` (seconds).

    A wait excludes the time in which the daemons and this process wait for a processor, since that
    time depends on the load of the machine. A wait is at least the CPU time that the daemons use
    meanwhile. `slowest_wall_s` is the longest wait including the time for a processor.
    """

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self.slowest_s = self.slowest_wall_s = 0.0

    @contextlib.contextmanager
    def measure(self) -> Iterator[None]:
        """Measure one wait."""
        start, queued_before_s, cpu_before_s = time.monotonic(), self._queued_s(), self._cpu_s()
        yield
        wall_s = time.monotonic() - start
        wait_s = wall_s - (self._queued_s() - queued_before_s)
        self.slowest_s = max(self.slowest_s, wait_s, self._cpu_s() - cpu_before_s)
        self.slowest_wall_s = max(self.slowest_wall_s, wall_s)

    def _queued_s(self) -> float:
        return queued_s(*self._pids, os.getpid())

    def _cpu_s(self) -> float:
        return sum(map(cpu_s, self._pids))
