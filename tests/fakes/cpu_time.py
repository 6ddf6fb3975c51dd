"""CPU time of other processes."""

import time

INTERVAL_S = 3.0


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far, in seconds."""
    return time.clock_gettime((~pid << 3) | 2)  # the clock that clock_getcpuclockid(3) returns


def cpu_shares(*pids: int, interval_s: float = INTERVAL_S) -> list[float]:
    """Return the share of a core that each process uses during the next ``interval_s`` seconds."""
    before, start = [cpu_s(pid) for pid in pids], time.monotonic()
    time.sleep(interval_s)
    elapsed = time.monotonic() - start
    return [(cpu_s(pid) - used) / elapsed for pid, used in zip(pids, before, strict=True)]
