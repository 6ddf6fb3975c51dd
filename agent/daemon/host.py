"""Samples of a job's process tree and of the host, named as the store's columns are."""

import contextlib
import os
import time
from collections.abc import Collection, Iterable
from heapq import nlargest
from typing import Any, Final

import psutil

from ...formats.ids import ALL_THREADS
from ..processes import TICK_S, Process, ProcessUsage, thread_times, usage

#: Interval of queries for used swap, number of CPUs, and names of disks and interfaces (seconds):
#: they are slow, and the values change rarely.
SLOW_QUERIES_S: Final = 10.0
_SECTOR: Final = 512  # unit of /proc/diskstats, independent of the disk
_DISKS: Final = b"/sys/block"
_INTERFACES: Final = b"/sys/class/net"
#: Minimum time (seconds) that a thread uses a CPU from one sample to the next to be in the sample,
#: and maximum number of such threads.
BUSY_MIN_S: Final = 0.1
BUSY_MAX: Final = 8
#: Number of lines that are read from /proc/meminfo.
_MEMORY_LINES: Final = 4


class TreeSampler:
    """Sums usage over a job's processes.

    Counters never shrink: an ended process counts with its last values.
    """

    def __init__(self) -> None:
        self._usages: dict[Process, ProcessUsage] = {}
        self._ended_usage = ProcessUsage()
        self._thread_cpu_s: dict[int, float] = {}
        self._process_cpu_s = 0.0
        self._has_children = False

    def sample(self, processes: Iterable[Process]) -> dict[str, Any]:
        """Return rows of the store's `samples`, `thread_samples` and `busy_threads`, without time.

        ``processes``: the job's own one first. Ended processes are included in the counters. The
        numbers of threads are those of the job's own process; they are missing if the kernel does
        not tell them. `busy_threads` is a list of (thread, CPU seconds since the last sample). As
        soon as there were several processes, it begins with those of the job's own, as thread 0.
        """
        processes = list(processes)
        usages = {}
        for process in processes:
            process_usage = usage(process)
            if process_usage is not None:
                usages[process] = process_usage
        for process in self._usages.keys() - usages.keys():
            self._ended_usage = _total((self._ended_usage, self._usages[process]))
        self._usages = usages
        current = _total(usages.values())
        total = _total((current, self._ended_usage))
        return {
            "processes": len(usages),
            "threads": current.threads,
            # Rounding removes the error of the sum, about 1e-14; a tick is 0.01 s.
            "cpu_user_s": round(total.cpu_user_s, 6),
            "cpu_system_s": round(total.cpu_system_s, 6),
            "rss_bytes": current.rss_bytes,
            "read_bytes": total.read_bytes,
            "write_bytes": total.write_bytes,
            **(self._threads(processes[0]) if processes else {}),
        }

    def _threads(self, process: Process) -> dict[str, Any]:
        """Return the columns about the threads of ``process``, the job's own one."""
        threads = thread_times(process)
        if threads is None:
            return {}
        times, cpu_s = threads
        growth = [(thread, round(now_s - self._thread_cpu_s.get(thread, now_s), 6)) for thread, now_s in cpu_s.items()]
        self._thread_cpu_s = cpu_s
        busy = nlargest(BUSY_MAX, (row for row in growth if row[1] >= BUSY_MIN_S), key=lambda row: row[1])
        busy = [*self._process(process), *busy]
        return {**{name: round(time_s, 6) for name, time_s in times._asdict().items()}, "busy_threads": busy}

    def _process(self, process: Process) -> list[tuple[int, float]]:
        """Return the CPU time of ``process`` since the last sample, if it has had children."""
        measured = self._usages.get(process)
        if measured is None:
            return []
        before_s, self._process_cpu_s = self._process_cpu_s, measured.cpu_user_s + measured.cpu_system_s
        self._has_children = self._has_children or len(self._usages) > 1
        return [(ALL_THREADS, round(self._process_cpu_s - before_s, 6))] if before_s and self._has_children else []


def _total(usages: Iterable[ProcessUsage]) -> ProcessUsage:
    columns = list(zip(*usages, strict=True))
    return ProcessUsage(*map(sum, columns)) if columns else ProcessUsage()


def _lines(path: str) -> list[bytes]:
    """Return the lines of a file of /proc; none where it does not exist."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().splitlines()
    except OSError:
        return []


def _devices(folder: bytes, names: Collection[bytes]) -> Collection[bytes]:
    """Return the hardware devices among ``names``, or all names if none is known to be one.

    A RAID or a bond counts the bytes of its devices again. In a container, no device is known.
    """
    return {name for name in names if os.path.lexists(b"%s/%s/device" % (folder, name))} or names


class HostSampler:
    """Measures the host; reads four /proc files in a third of the time that psutil takes."""

    def __init__(self) -> None:
        self._last_refresh_s = -SLOW_QUERIES_S
        self._swap_bytes = self._cpus = 0
        self._disks: Collection[bytes] = ()
        self._interfaces: Collection[bytes] = ()

    def sample(self) -> dict[str, float]:
        """Return a row of the store's `host_samples`, without its time, which is now."""
        # user, nice, system, idle, iowait, irq, softirq, steal; user time includes guest time
        ticks = [int(field) for line in _lines("/proc/stat")[:1] for field in line.split()[1:9]] or [0] * 8
        self._refresh_slow_values(time.monotonic())  # takes long, so only after the ticks are read
        memory = dict(line.split()[:2] for line in _lines("/proc/meminfo")[:_MEMORY_LINES])
        disks = [fields for line in _lines("/proc/diskstats") if (fields := line.split())[2] in self._disks]
        interfaces = [line.rpartition(b":") for line in _lines("/proc/net/dev")[2:]]
        networks = [fields.split() for name, _, fields in interfaces if name.strip() in self._interfaces]
        return {
            "cpus": self._cpus,
            "cpu_busy_s": (sum(ticks) - ticks[3] - ticks[4]) * TICK_S,
            "cpu_iowait_s": ticks[4] * TICK_S,
            "load_1m": os.getloadavg()[0],
            "memory_total_bytes": int(memory.get(b"MemTotal:", 0)) << 10,
            "memory_available_bytes": int(memory.get(b"MemAvailable:", 0)) << 10,
            "swap_used_bytes": self._swap_bytes,
            "disk_read_bytes": sum(int(fields[5]) for fields in disks) * _SECTOR,
            "disk_write_bytes": sum(int(fields[9]) for fields in disks) * _SECTOR,
            "net_received_bytes": sum(int(fields[0]) for fields in networks),
            "net_sent_bytes": sum(int(fields[8]) for fields in networks),
        }

    def _refresh_slow_values(self, now: float) -> None:
        if now < self._last_refresh_s + SLOW_QUERIES_S:
            return
        self._last_refresh_s = now
        self._swap_bytes, self._cpus = psutil.swap_memory().used, psutil.cpu_count() or 1
        with contextlib.suppress(OSError):
            self._disks = _devices(_DISKS, os.listdir(_DISKS))
        names = {line.rpartition(b":")[0].strip() for line in _lines("/proc/net/dev")[2:]}
        self._interfaces = _devices(_INTERFACES, names - {b"lo"})
