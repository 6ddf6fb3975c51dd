"""Creates anonymous memory files on descriptors above the standard ones."""

from __future__ import annotations

import ctypes
import errno

from .. import libc
from ..descriptors import open_descriptor
from ..guard import raised_by_job
from ..own_os import os

_CLOEXEC, _ALLOW_SEALING, _NOEXEC_SEAL = 1, 2, 8
#: Commands of fcntl, and seals (<linux/fcntl.h>).
ADD_SEALS, GET_SEALS = 1033, 1034
SEAL_SHRINK, SEAL_GROW = 2, 4
_RLIMIT_FSIZE = 1
_Limits = ctypes.c_ulong * 2  # soft and hard; made once: the job's garbage collection has to free each class


def create(name: str) -> int:
    """Return the descriptor of a new file; OSError when that fails.

    Child programs do not inherit the descriptor. The file is not executable where the kernel
    supports that.
    """
    try:
        return _create(name, _CLOEXEC | _ALLOW_SEALING | _NOEXEC_SEAL)
    except OSError as error:
        if raised_by_job(error):
            raise
    return _create(name, _CLOEXEC | _ALLOW_SEALING)


def reserve(fd: int, size: int) -> None:
    """Allocate the first ``size`` bytes of ``fd``; OSError when that fails.

    The limit of file sizes is checked first. Beyond it the kernel sends SIGXFSZ, which ends a job
    that has restored the signal's default action.
    """
    check_limit(size)
    os.posix_fallocate(fd, 0, size)


def check_limit(size: int) -> None:
    """Raise OSError if the limit of file sizes is below ``size`` bytes."""
    limits = _Limits()
    if libc.plain.getrlimit(_RLIMIT_FSIZE, limits) == 0 and size > limits[0]:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def _create(name: str, flags: int) -> int:
    function = getattr(os, "memfd_create", None) or _memfd_create
    return open_descriptor(lambda: int(function(name, flags)), ctypes.get_errno)


def _memfd_create(name: str, flags: int) -> int:
    """Return the result of the system call; a negative one comes with ``ctypes.get_errno``."""
    number = {"x86_64": 319, "aarch64": 279}.get(os.uname().machine, -1)  # Python before 3.8 has no function for it
    return int(libc.with_errno.syscall(number, ctypes.c_char_p(name.encode()), flags))
