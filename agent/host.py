"""Samples of a job's process tree and of the host, named as the store's columns are."""

from collections.abc import Iterable
from typing import NamedTuple

import psutil

from .processes import Process


class _Usage(NamedTuple):
    """What processes have used so far, and the size that they have now."""

    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    read_bytes: int = 0
    write_bytes: int = 0
    threads: int = 0
    rss_bytes: int = 0


class TreeSampler:
    """Sums over a job's processes. What counts up never shrinks: one that is gone counts with what it had last."""

    def __init__(self) -> None:
        self._handles: dict[Process, psutil.Process] = {}
        self._living: dict[Process, _Usage] = {}
        self._gone = _Usage()

    def sample(self, processes: Iterable[Process]) -> dict[str, float]:
        """Return a row of the store's `samples` (but for its time) for ``processes`` and those that were."""
        living = {}
        for process in processes:
            usage = self._measure(process)
            if usage is not None:
                living[process] = usage
        for process in self._living.keys() - living.keys():
            self._gone = _total((self._gone, self._living[process]))
            self._handles.pop(process, None)
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

    def _measure(self, process: Process) -> _Usage | None:
        """Return what ``process`` uses, None when it is gone or may not be looked at."""
        try:
            handle = self._handles.get(process)
            if handle is None:
                handle = self._handles[process] = psutil.Process(process.pid)
            with handle.oneshot():
                cpu, memory, threads = handle.cpu_times(), handle.memory_info(), handle.num_threads()
                read, written = _bytes(handle)
        except psutil.Error:
            return None
        return _Usage(cpu.user, cpu.system, read, written, threads, memory.rss)


def _bytes(handle: psutil.Process) -> tuple[int, int]:
    """Return the bytes read and written, 0 where the system does not say."""
    try:
        counters = handle.io_counters()
    except psutil.AccessDenied:
        return 0, 0
    return counters.read_bytes, counters.write_bytes


def _total(usages: Iterable[_Usage]) -> _Usage:
    columns = list(zip(*usages, strict=True))
    return _Usage(*map(sum, columns)) if columns else _Usage()


def host_sample() -> dict[str, float]:
    """Return a row of the store's `host_samples` (but for its time)."""
    cpu, memory = psutil.cpu_times(), psutil.virtual_memory()
    disk, net = psutil.disk_io_counters(), psutil.net_io_counters()
    return {
        "cpus": psutil.cpu_count() or 1,
        # guest time is part of user time already
        "cpu_busy_s": cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq + cpu.steal,
        "cpu_iowait_s": cpu.iowait,
        "load_1m": psutil.getloadavg()[0],
        "memory_total_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "swap_used_bytes": psutil.swap_memory().used,
        "disk_read_bytes": disk.read_bytes if disk else 0,
        "disk_write_bytes": disk.write_bytes if disk else 0,
        "net_received_bytes": net.bytes_recv if net else 0,
        "net_sent_bytes": net.bytes_sent if net else 0,
    }
