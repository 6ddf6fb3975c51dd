"""Small files in the runtime folder, read and replaced as a whole.

The folder is private but may contain anything. Only regular files of this user or root are opened,
without blocking or following links, and reads are bounded.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

#: Maximum size of a file (bytes): the result of a launch with ten thousand processes is smaller.
FILE_MAX = 16 << 20


def open_regular(path: str, flags: int) -> int:
    """Return a descriptor of the regular file ``path``; OSError when it is anything else.

    The file must belong to this user or root. With ``O_CREAT`` in ``flags`` a missing file is
    created with mode 0600.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    info = os.fstat(fd)
    if stat.S_ISREG(info.st_mode) and info.st_uid in (0, os.geteuid()):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file of this user's", path)


def read_file(path: str, limit: int, last: bool = False) -> bytes | None:
    """Return the first (or ``last``) ``limit`` bytes of ``path``; None if it cannot be read."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a device may have side effects
            return None
        fd = open_regular(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        with os.fdopen(fd, "rb", 0) as file:
            if last:
                file.seek(max(0, os.fstat(fd).st_size - limit))
            return file.read(limit)
    except OSError:
        return None


def write_json(path: str, value: dict[str, Any]) -> None:
    """Replace the file ``path`` by ``value`` atomically; OSError when that fails."""
    import json  # imported late: many commands use no such file

    write_text(path, json.dumps(value))  # in one piece: json.dump takes ten times as long


def write_text(path: str, text: str) -> None:
    """Replace the file ``path`` by ``text`` atomically; OSError when that fails."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    try:
        os.unlink(temporary)  # left by an earlier process with the same pid
    except FileNotFoundError:
        pass
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def read_json(path: str) -> dict[str, Any] | None:
    """Return the JSON object in the regular file ``path``, None when it is invalid or missing."""
    data = read_file(path, FILE_MAX)
    if data is None:
        return None
    import json  # imported late, as above

    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
