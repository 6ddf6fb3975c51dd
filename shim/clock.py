"""Private references to functions for clocks and ids, since a job may replace the originals."""

import _imp
import sys
import time
from _thread import _local
from functools import partial

from .own_os import os

if sys.version_info >= (3, 9) and {*map(type, (time.monotonic_ns, time.time_ns, time.sleep))} != {type(id)}:
    time = _imp.create_builtin(time.__spec__)  # a copy, since an attach falls into a test that replaces these
    _imp.exec_builtin(time)
mono = partial(time.monotonic_ns)  # freezegun replaces the functions themselves in every module
real = partial(time.time_ns)
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

        return max(0, int(plain.syscall(_GETTID.get(os.uname().machine, -1))))


class ThreadId(_local):
    """Each thread's ``tid``, read once per thread.

    Ids of ended threads are reused, so a table by id could be wrong.
    """

    def __init__(self) -> None:
        self.tid = _native_id()
