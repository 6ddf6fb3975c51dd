"""Opens the files of a store for reading.

A store may belong to another user, and its folders may contain anything. Only regular files of a
plausible size that belong to the store's owner or to root are opened.
"""

import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from ..errors import StoreError
from .durable import unreadable_error


class FileKind(NamedTuple):
    """A kind of file: its maximum size, and its place.

    ``size_max``: more bytes than a collector or a command ever writes. ``depth``: number of folders
    between the store's folder and the file.
    """

    size_max: int
    depth: int = 2


STORE: Final = FileKind(64 << 10, depth=0)
LOCK: Final = FileKind(64 << 10, depth=1)
#: The jobs that were copied into another store, in 17 bytes each.
COPIED: Final = FileKind(64 << 20, depth=1)
JOB: Final = FileKind(16 << 20)
TAGS: Final = FileKind(16 << 20)
#: A writer seals a log of LOG_BYTES_MAX before it appends. An append of a running job is smaller
#: than the rest of this size.
LOG_BYTES_MAX: Final = 64 << 20
LOG: Final = FileKind(4 * LOG_BYTES_MAX)
#: A generation of an imported job may have a tensor of 2 GiB, or a graph of the same size.
SEGMENT: Final = FileKind(4 << 30)

#: Flags with which opening a file neither follows a link nor waits, even if the file was replaced
#: after it was checked.
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_file(path: Path, kind: FileKind) -> int:
    """Return a descriptor of the file at ``path`` for reading.

    FileNotFoundError if there is none. StoreError if it cannot be read, is not a regular file, is
    too large for its ``kind``, or belongs neither to the store's owner nor to root.
    """
    try:
        _check_type(path, path.lstat())  # before opening: opening a device may have side effects
        descriptor = os.open(path, _FLAGS)
        try:
            _check(path, os.fstat(descriptor), kind)
        except BaseException:
            os.close(descriptor)
            raise
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable_error(path, error) from None
    return descriptor


def check(path: Path, kind: FileKind) -> None:
    """Raise the errors of ``open_file``, for a file that a library opens by its path."""
    os.close(open_file(path, kind))


def read(path: Path, kind: FileKind, start: int = 0) -> bytes:
    """Return the content of the file at ``path`` from ``start`` on; errors as in ``open_file``."""
    descriptor = open_file(path, kind)
    try:
        return os.pread(descriptor, max(0, min(os.fstat(descriptor).st_size, kind.size_max) - start), start)
    except OSError as error:
        raise unreadable_error(path, error) from None
    finally:
        os.close(descriptor)


def irregular_error(path: Path) -> StoreError:
    """Return the error about ``path``, which is not a regular file."""
    return StoreError(f"{path} is damaged: it is not a regular file", "store-damaged")


def _check_type(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise irregular_error(path)


def _check(path: Path, status: os.stat_result, kind: FileKind) -> None:
    _check_type(path, status)
    if status.st_size > kind.size_max:
        text = f"it has {status.st_size} bytes, and such a file has at most {kind.size_max}"
        raise StoreError(f"{path} is damaged: {text}", "store-damaged")
    owner = path.parents[kind.depth].stat().st_uid
    if status.st_uid not in (0, owner):
        text = f"belongs to user {status.st_uid}, and not to the store's owner, user {owner}, or root"
        raise StoreError(f"{path} {text}", "store-foreign")
