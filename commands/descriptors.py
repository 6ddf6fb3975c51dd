"""Closes the descriptors that a forked process has inherited."""

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def close_all_except(*kept_fds: int) -> None:
    """Close all descriptors above 2 except ``kept_fds``.

    Only open ones are closed. To try every number up to the limit, which may be 2**30 in a
    container, takes minutes where the system call `close_range` is missing.
    """
    open_fds: Iterable[int]
    try:
        open_fds = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # there is no /proc, or no descriptor is left to list it
        open_fds = range(os.sysconf("SC_OPEN_MAX"))
    for fd in open_fds:
        if fd > 2 and fd not in kept_fds:
            with contextlib.suppress(OSError):  # the descriptor of the list is closed
                os.close(fd)
