"""Keeps our files off descriptors 0, 1 and 2.

A job may have closed these; its output must not land in our files.
"""

from __future__ import annotations

import errno
import os

from .guard import raised_by_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_LOWEST = 3  # lowest descriptor of our files
_O_PATH = getattr(os, "O_PATH", 0o10000000)
_ROOT = "/"


class StandardFdsReserved(object):
    """While entered, new descriptors are 3 or above: placeholders occupy 0, 1 and 2 if closed.

    Placeholders can be neither read nor written, so that the job's own calls on them fail with
    EBADF as before.
    """

    __slots__ = ("_placeholders", "_root")

    def __enter__(self) -> None:
        self._placeholders: list[int] = []
        self._root = os.stat(_ROOT)
        try:
            self._reserve()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_error: object) -> None:
        for fd in self._placeholders:
            if refers_to(fd, self._root):  # unless the job has replaced it
                os.close(fd)

    def _reserve(self) -> None:
        while not _are_standard_open():
            fd = os.open(_ROOT, _O_PATH | os.O_CLOEXEC)
            if fd >= _LOWEST:  # another thread has taken the last standard descriptor
                os.close(fd)
                return
            self._placeholders.append(fd)


def _are_standard_open() -> bool:
    for fd in range(_LOWEST):
        try:
            os.fstat(fd)
        except OSError as error:
            if error.errno != errno.EBADF or raised_by_job(error):
                raise
            return False
    return True


def refers_to(fd: int, file: os.stat_result) -> bool:
    """Return whether ``fd`` is a descriptor of ``file``."""
    try:
        return os.path.samestat(os.fstat(fd), file)
    except OSError as error:
        if raised_by_job(error):
            raise
        return False


def write(fd: int, data: bytes) -> None:
    """Write as much of ``data`` as possible."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError as error:
        if raised_by_job(error):
            raise
        return  # closed, full or broken: the data is lost, as it would be without tfprof


def open_file(path: str, flags: int, mode: Any = 0o600) -> int:
    """Return a descriptor of ``path``, 3 or above and not inherited; OSError as ``os.open``."""
    return open_descriptor(lambda: os.open(path, flags | os.O_CLOEXEC, mode))


def open_descriptor(function: Callable[[], int], error_number: Callable[[], int] = int) -> int:
    """Return the descriptor that ``function`` opens, 3 or above.

    If an exception of the job's arrives meanwhile, the descriptor is closed. If ``function``
    returns a negative number, raise OSError with the number that ``error_number`` returns.
    """
    fd = -1
    try:
        with StandardFdsReserved():
            fd = function()
        if fd < 0:
            number = error_number()
            raise OSError(number, os.strerror(number))  # noqa: TRY301 - nothing is to be closed
        return fd  # noqa: TRY300 - the handler closes fd if an exception arrives just before this line
    except BaseException:
        if fd >= 0:
            os.close(fd)
        raise


def remove_file(path: str) -> None:
    """Remove the file ``path`` if it exists and the system allows it."""
    try:
        os.unlink(path)
    except OSError as error:
        if raised_by_job(error):
            raise
