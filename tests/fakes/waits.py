"""Measures how long daemons keep a job waiting, on loaded machines too."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from fakes.cpu_time import cpu_s


def queued_s(pid: int) -> dict[str, float]:
    """Return how long each thread of a process has waited for a processor so far, in seconds.

    It is empty where the kernel does not measure this.
    """
    queued = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has ended, or the kernel has no such file
            queued[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
    return queued


def _longest_s(before: dict[str, float], after: dict[str, float]) -> float:
    """Return how long a thread that is in both has waited meanwhile, at most."""
    return max((after[task] - before[task] for task in before.keys() & after), default=0.0)


class Waits:
    """Waits of a job for the daemons ``pids``; the longest is in `slowest_s` (seconds).

    A wait excludes the time in which the daemons and this process wait for a processor, since that
    time depends on the load of the machine. Of the threads of a process, which may wait at the same
    time, the one that waits longest counts. A wait is at least the CPU time that the daemons use
    meanwhile. `slowest_wall_s` is the longest wait including the time for a processor.
    """

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self.slowest_s = self.slowest_wall_s = 0.0

    @contextlib.contextmanager
    def measure(self) -> Iterator[None]:
        """Measure one wait."""
        pids = (*self._pids, os.getpid())
        start, queued_before, cpu_before_s = time.monotonic(), [*map(queued_s, pids)], self._cpu_s()
        yield
        wall_s = time.monotonic() - start
        wait_s = wall_s - sum(map(_longest_s, queued_before, map(queued_s, pids)))
        self.slowest_s = max(self.slowest_s, wait_s, self._cpu_s() - cpu_before_s)
        self.slowest_wall_s = max(self.slowest_wall_s, wall_s)

    def _cpu_s(self) -> float:
        return sum(map(cpu_s, self._pids))
