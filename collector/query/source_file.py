"""Reads a source file of a job, if it is still the file that the job was started with."""

import errno
import os
import stat
from typing import Final

from ...commands.streams import clean

#: Maximum size of a file (bytes), and of a line (characters).
SIZE_MAX: Final = 10**6
_LINE_MAX: Final = 300
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: Only files with this suffix are read, since whoever writes a job's records could name a file with
#: secrets.
_SUFFIX: Final = ".py"


class NoTextError(Exception):
    """The text of a file is not available; the message says why."""


def source_text(path: str, before_ns: int) -> list[str]:
    """Return the lines of the file at ``path``, cleaned, without their ends.

    NoTextError if it cannot be read, or if it was changed at ``before_ns`` (real time) or later.
    """
    if not path.endswith(_SUFFIX) or "\0" in path:
        raise NoTextError(f"only files named {_SUFFIX} are read")
    if not path.startswith("/"):
        raise NoTextError("its folder is unknown")
    try:
        fd = os.open(path, _FLAGS)
    except (OSError, UnicodeError) as error:
        raise NoTextError(_reason(error)) from None
    try:
        _check(os.fstat(fd), before_ns)
        with open(fd, "rb", closefd=False) as file:
            content = file.read(SIZE_MAX)
        _check(os.fstat(fd), before_ns)
    except OSError as error:
        raise NoTextError(_reason(error)) from None
    finally:
        os.close(fd)
    text = content.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return [clean(line[:_LINE_MAX].expandtabs()) for line in text.split("\n")]


def _check(status: os.stat_result, before_ns: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NoTextError("it is not a regular file")
    if status.st_size > SIZE_MAX:
        raise NoTextError("it is larger than 1 MB")
    # The time of the last change is not enough: a file with old content may have been moved here
    # later.
    if max(status.st_mtime_ns, status.st_ctime_ns) >= before_ns:
        raise NoTextError("it was changed since the job began")


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ELOOP:
        return "it is a symbolic link"
    return f"it cannot be read: {os.strerror(number)}" if number else "it cannot be read"
