"""Reads processes from /proc: holders of channels, living processes, parents."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from ..commands.proc_stat import is_alive, read_stat
from ..formats import layout

#: The path that /proc shows for a channel.
_LINK: Final = f"/memfd:{layout.MEMFD_NAME} (deleted)"


class DescriptorHolder(NamedTuple):
    """A process that has a channel open, and the path of its descriptor."""

    pid: int
    path: str


#: Device and inode of a file, which identify a channel without opening it.
Inode = tuple[int, int]


class Process(NamedTuple):
    """A process, distinct from a later one with the same pid.

    `started` is in clock ticks since boot.
    """

    pid: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs; a zombie does not."""
        return is_alive(self.pid, self.started)

    @property
    def is_stopped(self) -> bool:
        """Whether the process is stopped, by SIGSTOP or by a debugger."""
        stat = read_stat(self.pid)
        return stat is not None and stat.started == self.started and stat.is_stopped


class ProcessUsage(NamedTuple):
    """Resources that processes have used so far, and their current size."""

    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    read_bytes: int = 0
    write_bytes: int = 0
    threads: int = 0
    rss_bytes: int = 0


#: Length of a clock tick of the kernel (seconds).
TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def usage(process: Process) -> ProcessUsage | None:
    """Return the usage of ``process``, None when it is gone.

    This reads two files. psutil reads four and takes four times as long.
    """
    stat = read_stat(process.pid)
    if stat is None or stat.started != process.started or stat.is_over:
        return None
    user_s, system_s = stat.user_ticks * TICK_S, stat.system_ticks * TICK_S
    return ProcessUsage(user_s, system_s, *_disk_bytes(process.pid), stat.threads, stat.rss_pages * _PAGE)


class ThreadTimes(NamedTuple):
    """What the threads of a process did so far, in seconds.

    ``main_cpu_s`` and ``main_queued_s``: the main thread used a CPU, and waited for one.
    ``queued_s``: the sum of the waits of all living threads.
    """

    main_cpu_s: float = 0.0
    main_queued_s: float = 0.0
    queued_s: float = 0.0


def thread_times(process: Process) -> tuple[ThreadTimes, dict[int, float]] | None:
    """Return the times of the threads of ``process``, None if the kernel does not tell.

    The second value is the time (seconds) that each thread but the main one used a CPU so far. This
    reads a small file for each thread.
    """
    try:
        threads = os.listdir(f"/proc/{process.pid}/task")
    except OSError:
        return None
    times = {thread: read for thread in threads if (read := _schedstat(process.pid, thread)) is not None}
    main = times.get(str(process.pid))
    if main is None:
        return None
    others = {int(thread): cpu / 1e9 for thread, (cpu, _) in times.items() if thread != str(process.pid)}
    return ThreadTimes(main[0] / 1e9, main[1] / 1e9, sum(queued for _, queued in times.values()) / 1e9), others


def _schedstat(pid: int, thread: str) -> tuple[int, int] | None:
    """Return the time of a thread on a CPU and in the queue for one (ns), None if unknown."""
    try:
        fd = os.open(f"/proc/{pid}/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        cpu, queued, *_ = os.read(fd, 128).split()
        return int(cpu), int(queued)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)


def _disk_bytes(pid: int) -> tuple[int, int]:
    """Return bytes read from and written to disks, 0 where they are unknown."""
    try:
        with open(f"/proc/{pid}/io", "rb", buffering=0) as file:
            counts = dict(line.split(b": ") for line in file.read().splitlines())
        return int(counts[b"read_bytes"]), int(counts[b"write_bytes"])
    except (OSError, KeyError, ValueError):
        return 0, 0


def process(pid: int) -> Process | None:
    """Return the process that has ``pid`` now, None when there is none."""
    stat = read_stat(pid)
    return None if stat is None else Process(pid, stat.started)


def age_s(process: Process) -> float:
    """Return the age of ``process`` (seconds)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - process.started * TICK_S


def ran_at(pid: int, real_ns: int) -> bool:
    """Return whether process ``pid`` exists, if only as a zombie, and existed at ``real_ns``.

    Clock changes of up to a minute are tolerated.
    """
    stat = read_stat(pid)
    if stat is None:
        return False
    start_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + stat.started * TICK_S
    return start_s < real_ns / 1e9 + 60.0


def is_descendant(pid: int, ancestor: int) -> bool:
    """Return whether process ``pid`` is ``ancestor`` or one of its descendants."""
    while pid > 1 and pid != ancestor:
        stat = read_stat(pid)
        pid = stat.parent if stat is not None else 0
    return pid == ancestor


class ProcessTree(NamedTuple):
    """The living processes of the host at one moment, by pid, and the pids of their children."""

    members: dict[int, Process]
    children: dict[int, list[int]]

    def subtree(self, root: int, excluded_pids: frozenset[int]) -> list[Process]:
        """Return ``root`` and its descendants, except the subtrees of ``excluded_pids``."""
        processes, pending_pids = [], [root] if root in self.members else []
        while pending_pids:
            pid = pending_pids.pop()
            processes.append(self.members[pid])
            pending_pids += [child for child in self.children.get(pid, ()) if child not in excluded_pids]
        return processes


def process_tree(pids: Iterable[int]) -> ProcessTree:
    """Return the tree of those ``pids`` that are alive."""
    members: dict[int, Process] = {}
    children: dict[int, list[int]] = {}
    for pid in pids:
        stat = read_stat(pid)
        if stat is not None and not stat.is_over:
            members[pid] = Process(pid, stat.started)
            children.setdefault(stat.parent, []).append(pid)
    return ProcessTree(members, children)


def all_pids() -> Iterator[int]:
    """Yield the pid of every process."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def visible_pids(user_id: int) -> Iterator[int]:
    """Yield the pids that user ``user_id`` may inspect: root all of them, others their own."""
    for pid in all_pids():
        try:
            if user_id == 0 or os.stat(f"/proc/{pid}").st_uid == user_id:
                yield pid
        except OSError:
            continue


def channels_of(pid: int) -> dict[Inode, str]:
    """Return the open channels of process ``pid``, each with a path to open it by."""
    channels: dict[Inode, str] = {}
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return channels
    for name in names:
        path = f"{folder}/{name}"
        with suppress(OSError):  # the process closes files meanwhile
            if os.readlink(path) == _LINK:
                info = os.stat(path)
                channels[info.st_dev, info.st_ino] = path
    return channels


def scan(user_id: int) -> dict[Inode, list[DescriptorHolder]]:
    """Return all channels and their holders among the other processes; this takes some ms.

    Only processes that user ``user_id`` may inspect are read.
    """
    holders: dict[Inode, list[DescriptorHolder]] = {}
    for pid in visible_pids(user_id):
        if pid != os.getpid():
            for inode, path in channels_of(pid).items():
                holders.setdefault(inode, []).append(DescriptorHolder(pid, path))
    return holders


def status_of(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/status by name; OSError if the process is gone."""
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def ns_pid(pid: int) -> int:
    """Return the pid of process ``pid`` in its own namespace, 0 when it is gone."""
    try:
        ns_pids = status_of(pid).get("NSpid")
    except OSError:
        return 0
    return int(ns_pids.split()[-1]) if ns_pids else pid


def still_maps(pid: int, inode: Inode) -> bool:
    """Return whether process ``pid`` maps the channel ``inode``; an exec removes the mapping."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            return any(_LINK in line and int(line.split()[4]) == inode[1] for line in file)
    except OSError:
        return False
