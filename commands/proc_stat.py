"""Reads /proc/PID/stat, what the kernel tells about a process."""

import os
from typing import NamedTuple


class Stat(NamedTuple):
    """What /proc/PID/stat tells about a process.

    ``started`` is in clock ticks since boot. ``addresses``: of code and stack, 0 for a process of
    another user.
    """

    parent: int
    started: int
    is_over: bool
    is_stopped: bool
    user_ticks: int
    system_ticks: int
    threads: int
    rss_pages: int
    addresses: tuple[int, ...]


def read_stat(pid: int) -> Stat | None:
    """Return the fields of /proc/PID/stat, None when there is no such process."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, 1024)
    except OSError:
        return None
    finally:
        os.close(fd)
    # The name in parentheses may hold anything, parentheses too.
    fields = data[data.rindex(b")") + 2 :].split()
    threads = int(fields[17])
    return Stat(
        parent=int(fields[1]),
        started=int(fields[19]),
        is_over=fields[0] in b"ZX" and threads <= 1,
        is_stopped=fields[0] in b"Tt",
        user_ticks=int(fields[11]),
        system_ticks=int(fields[12]),
        threads=threads,
        rss_pages=int(fields[21]),
        addresses=tuple(map(int, fields[23:26])),
    )


def is_alive(pid: int, started: object) -> bool:
    """Return whether a process that began at ``started`` (clock ticks since boot) still runs.

    A zombie does not, and a later process with the same pid is another one.
    """
    stat = read_stat(pid)
    return stat is not None and stat.started == started and not stat.is_over
