"""Wakes a waiting process when a file appears in a folder.

A short-lived process is announced moments before its end, so polling would be too slow.
"""

import contextlib
import os
from typing import Final

#: IN_CREATE | IN_MOVED_TO of <sys/inotify.h>; IN_CLOEXEC and IN_NONBLOCK equal the flags of open.
_EVENTS: Final = 0x100 | 0x80
_FLAGS: Final = os.O_CLOEXEC | os.O_NONBLOCK
_READ_BYTES: Final = 1 << 16


class FolderWatch:
    """Watches ``folder``: ``fd`` becomes readable when a file appears; it is -1 without inotify."""

    def __init__(self, folder: str) -> None:
        self.fd = _inotify_fd(folder)

    def clear(self) -> None:
        """Discard the events so far."""
        with contextlib.suppress(BlockingIOError):
            while self.fd >= 0 and len(os.read(self.fd, _READ_BYTES)) > _READ_BYTES // 2:
                pass

    def close(self) -> None:
        """Stop watching."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def _inotify_fd(folder: str) -> int:
    try:
        import ctypes  # noqa: PLC0415 - the launcher needs it only after the start of the job
    except ImportError:
        return -1
    libc = ctypes.CDLL(None)
    fd = int(libc.inotify_init1(_FLAGS))
    if fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(folder), _EVENTS) < 0:
        os.close(fd)
        return -1
    return fd
