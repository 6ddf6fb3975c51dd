"""CPU time of other processes."""

import time

WINDOW_S = 3.0


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far, in seconds."""
    return time.clock_gettime((~pid << 3) | 2)  # the clock that clock_getcpuclockid(3) returns


def cpu_shares(*pids: int, window_s: float = WINDOW_S) -> list[float]:
    """Return the share of a core that each process uses during the next ``window_s`` seconds."""
    before, start = [cpu_s(pid) for pid in pids], time.monotonic()
    time.sleep(window_s)
    elapsed = time.monotonic() - start
    return [(cpu_s(pid) - used) / elapsed for pid, used in zip(pids, before, strict=True)]
