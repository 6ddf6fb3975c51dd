"""Files that are either wholly there or not at all, private to their owner."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from tfprof.collector.errors import StoreError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_MODE = 0o600


def make_folder(path: Path) -> None:
    """Create ``path`` and what is above it, private; StoreError when that cannot be."""
    with told(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn an OSError about ``path`` into the StoreError that says what is wrong with the store."""
    try:
        yield
    except OSError as error:
        slug = "store-full" if error.errno in _FULL else "store-unwritable"
        raise StoreError(f"cannot write {path}: {error.strerror or error}", slug) from error


def replace(path: Path, data: bytes | memoryview) -> None:
    """Make ``data`` the content of ``path`` in one step; an OSError leaves what was there and no rest of ours."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write ``data`` at the descriptor's position, however many calls that takes."""
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(path: Path) -> None:
    """Make renames and removals in folder ``path`` last."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
