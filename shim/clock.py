"""Private references to functions for clocks and ids, since a job may replace the originals."""

import sys
import time
from _thread import _local

from .own_os import os

mono = time.monotonic_ns
real = time.time_ns
getpid = os.getpid
identity = id
sleep = time.sleep

_GETTID = {"x86_64": 186, "aarch64": 178}

if sys.version_info >= (3, 8):
    from _thread import get_native_id as _native_id
else:

    def _native_id() -> int:
        """Return the kernel's id of the calling thread, 0 where it is unknown."""
        from .libc import plain

        number = _GETTID.get(os.uname().machine)
        return 0 if number is None else int(plain.syscall(number))


class ThreadId(_local):
    """Each thread's ``tid``, read once per thread.

    Ids of ended threads are reused, so a table by id could be wrong.
    """

    def __init__(self) -> None:
        self.tid = _native_id()
