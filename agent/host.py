"""Samples of a job's process tree and of the host, named as the store's columns are."""

import time
from collections.abc import Iterable
from typing import Final

import psutil

from .processes import Process, Usage, usage

#: Swap changes slowly, and takes a third of the time of all other numbers.
SWAP_S: Final = 10.0


class TreeSampler:
    """Sums over a job's processes. What counts up never shrinks: one that is gone counts with what it had last."""

    def __init__(self) -> None:
        self._living: dict[Process, Usage] = {}
        self._gone = Usage()

    def sample(self, processes: Iterable[Process]) -> dict[str, float]:
        """Return a row of the store's `samples` (but for its time) for ``processes`` and those that were."""
        living = {}
        for process in processes:
            used = usage(process)
            if used is not None:
                living[process] = used
        for process in self._living.keys() - living.keys():
            self._gone = _total((self._gone, self._living[process]))
        self._living = living
        now = _total(living.values())
        ever = _total((now, self._gone))
        return {
            "processes": len(living),
            "threads": now.threads,
            "cpu_user_s": ever.cpu_user_s,
            "cpu_system_s": ever.cpu_system_s,
            "rss_bytes": now.rss_bytes,
            "read_bytes": ever.read_bytes,
            "write_bytes": ever.write_bytes,
        }


def _total(usages: Iterable[Usage]) -> Usage:
    columns = list(zip(*usages, strict=True))
    return Usage(*map(sum, columns)) if columns else Usage()


class HostSampler:
    """Measures the host."""

    def __init__(self) -> None:
        self._swap_s = -SWAP_S
        self._swap_bytes = 0

    def sample(self) -> dict[str, float]:
        """Return a row of the store's `host_samples` (but for its time)."""
        now = time.monotonic()
        if now >= self._swap_s + SWAP_S:
            self._swap_s, self._swap_bytes = now, psutil.swap_memory().used
        cpu, memory = psutil.cpu_times(), psutil.virtual_memory()
        disk, net = psutil.disk_io_counters(nowrap=False), psutil.net_io_counters(nowrap=False)
        return {
            "cpus": psutil.cpu_count() or 1,
            # guest time is part of user time already
            "cpu_busy_s": cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq + cpu.steal,
            "cpu_iowait_s": cpu.iowait,
            "load_1m": psutil.getloadavg()[0],
            "memory_total_bytes": memory.total,
            "memory_available_bytes": memory.available,
            "swap_used_bytes": self._swap_bytes,
            "disk_read_bytes": disk.read_bytes if disk else 0,
            "disk_write_bytes": disk.write_bytes if disk else 0,
            "net_received_bytes": net.bytes_recv if net else 0,
            "net_sent_bytes": net.bytes_sent if net else 0,
        }
