"""Keeps our files off descriptors 0, 1 and 2: a job that closed these must not write into ours."""

from __future__ import annotations

from fcntl import F_DUPFD_CLOEXEC, fcntl
from functools import partial
from typing import Any, Callable

from .guard import attempt
from .own_os import os

_LOWEST = 3  # lowest descriptor of our files
control = partial(fcntl)  # pyfakefs replaces the function itself in every module


def refers_to(fd: int, file: os.stat_result) -> bool:
    """Return whether ``fd`` is a descriptor of ``file``."""
    return bool(attempt(OSError, lambda: os.path.samestat(os.fstat(fd), file)))


def write(fd: int, data: bytes) -> None:
    """Write as much of ``data`` as possible; the rest is lost, as it would be without tfprof."""
    while data:
        data = data[attempt(OSError, os.write, fd, data) or len(data) :]


def open_file(path: str, flags: int, mode: Any = 0o600) -> int:
    """Return a descriptor of ``path``, 3 or above and not inherited; OSError as ``os.open``."""
    return open_descriptor(lambda: os.open(path, flags | os.O_CLOEXEC, mode))


def open_descriptor(function: Callable[[], int], error_number: Callable[[], int] = int) -> int:
    """Return the descriptor that ``function`` opens, 3 or above.

    If an exception of the job's arrives meanwhile, the descriptor is closed. If ``function``
    returns a negative number, raise OSError with the number that ``error_number`` returns.
    """
    fds: list[int] = []
    try:
        fds.append(function())
        if fds[0] < 0:
            number = error_number()
            fds.clear()
            raise OSError(number, os.strerror(number))  # noqa: TRY301 - nothing is to be closed
        if fds[0] < _LOWEST:
            fds.append(control(fds[0], F_DUPFD_CLOEXEC, _LOWEST))
            os.close(fds.pop(0))
        return fds[0]
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
