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

_LOWEST = 3
_O_PATH = getattr(os, "O_PATH", 0o10000000)
_ROOT = "/"


class StandardFdsReserved(object):
    """While entered, new descriptors are 3 or above: placeholders occupy closed ones of 0, 1 and 2.

    Placeholders can be neither read nor written, so that the job's own calls on them fail with
    EBADF as before.
    """

    __slots__ = ("_plug", "_taken")

    def __enter__(self) -> None:
        self._taken: list[int] = []
        self._plug = os.stat(_ROOT)
        try:
            self._reserve()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_error: object) -> None:
        for fd in self._taken:
            if is_file(fd, self._plug):  # unless the job has replaced it
                os.close(fd)

    def _reserve(self) -> None:
        while not _standard_open():
            fd = os.open(_ROOT, _O_PATH | os.O_CLOEXEC)
            if fd >= _LOWEST:  # another thread opened the last standard one
                os.close(fd)
                return
            self._taken.append(fd)


def _standard_open() -> bool:
    for fd in range(_LOWEST):
        try:
            os.fstat(fd)
        except OSError as error:
            if error.errno != errno.EBADF or raised_by_job(error):
                raise
            return False
    return True


def is_file(fd: int, file: os.stat_result) -> bool:
    """Return whether ``fd`` is a descriptor of ``file``."""
    try:
        return os.path.samestat(os.fstat(fd), file)
    except OSError as error:
        if raised_by_job(error):
            raise
        return False


def write(fd: int, data: bytes) -> None:
    """Write ``data``, as much as possible."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError as error:
        if raised_by_job(error):
            raise
        return  # closed, full or broken: the data is lost, as it would be without tfprof


def open_file(path: str, flags: int, mode: Any = 0o600) -> int:
    """Return a descriptor of ``path``, 3 or above and not inherited; OSError as ``os.open``."""
    return opened(lambda: os.open(path, flags | os.O_CLOEXEC, mode))


def opened(make: Callable[[], int], code: Callable[[], int] = int) -> int:
    """Return the descriptor that ``make`` opens, 3 or above.

    It is closed if an exception of the job's arrives before. If ``make`` returns a negative number,
    raise OSError with the error number that ``code`` returns.
    """
    fd = -1
    try:
        with StandardFdsReserved():
            fd = make()
        if fd < 0:
            number = code()
            raise OSError(number, os.strerror(number))  # noqa: TRY301 - nothing is to be closed
        return fd  # noqa: TRY300 - an exception that arrives just before this line closes it
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
