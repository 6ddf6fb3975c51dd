"""Private references to functions for clocks and ids, since a job may replace the originals."""

import _thread
import sys
import time

from .own_os import os

mono = time.monotonic_ns
real = time.time_ns
getpid = os.getpid
sleep = time.sleep

_GETTID = {"x86_64": 186, "aarch64": 178}


def _native_id() -> int:
    """Return the kernel's id of the calling thread, 0 where it is unknown."""
    if sys.version_info >= (3, 8):
        tid = _thread.get_native_id()
    else:
        from .libc import plain

        number = _GETTID.get(os.uname().machine)
        tid = 0 if number is None else int(plain.syscall(number))
    return tid


class ThreadId(_thread._local):
    """Each thread's ``tid``, read once per thread.

    Ids of ended threads are reused, so a table by id could be wrong.
    """

    def __init__(self) -> None:
        self.tid = _native_id()
