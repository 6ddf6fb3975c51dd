"""The lock of a collector: a store has one writer per host."""

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from ..errors import StoreError
from . import store_files
from .durable import open_own, store_errors

#: Number of attempts to lock, and seconds between them. A reader that looks up the holder locks the
#: file for microseconds.
_TRIES, _PAUSE_S = 5, 0.02


class Lock:
    """An exclusive lock on a file, until ``release`` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock; the file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def take(path: Path, holder: dict[str, Any], *, is_only_writer: bool = False) -> Lock:
    """Lock ``path`` and write ``holder`` into it.

    StoreError ``store-in-use`` names the current holder. ``is_only_writer``: there is certainly no
    other collector. If the file is locked, a reader holds it. The file is then replaced, and the
    reader keeps the old one.
    """
    place = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp") if is_only_writer else path
    with store_errors(path):
        descriptor = open_own(place, os.O_RDWR)
        try:
            _lock(descriptor, path)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(holder).encode(), 0)
            place.replace(path)
        except BaseException:
            os.close(descriptor)
            raise
    return Lock(descriptor)


def holder(path: Path) -> dict[str, Any] | None:
    """Return the content of the lock at ``path`` (see ``take``), None if nobody holds it."""
    try:
        descriptor = store_files.open_file(path, store_files.LOCK)
    except (FileNotFoundError, StoreError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def _lock(descriptor: int, path: Path) -> None:
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return
    owner = _read_holder(descriptor)
    message = (
        f"the collector of process {owner.get('pid', '?')} on {owner.get('host', '?')} writes {path.parent.parent}"
    )
    raise StoreError(f"{message}: stop it, or use another --store", "store-in-use")


def _read_holder(descriptor: int) -> dict[str, Any]:
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
