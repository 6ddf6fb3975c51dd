"""Import a whole job: build it in a hidden folder, then rename it into place."""

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from . import catalog, durable
from .writer import JobWriter

#: No reader takes a folder of such a name for a job, and no collector touches it.
_STAGED: Final = ".staged-"
#: A folder that is younger may be about to be locked.
_YOUNG_S: Final = 60.0


@contextlib.contextmanager
def staged(store: Path, host: str) -> Iterator[JobWriter]:
    """Give the writer of a new job, which is in ``store`` after the block: whole, or after an exception not at all.

    The writer is to be closed in the block. StoreError when the store cannot be written.
    """
    catalog.make(store)
    _sweep(store)
    uid = secrets.randbits(64) or 1
    folder = catalog.jobs_folder(store) / f"{_STAGED}{uid:016x}"
    durable.make_folder(folder)
    lock = _locked(folder)
    try:
        writer = JobWriter(folder, uid, {"host": host, "pid": os.getpid(), "id": ""})
        try:
            yield writer
        finally:
            writer.release()
        target = catalog.job_folder(store, uid)
        with durable.store_errors(target):
            folder.replace(target)
            durable.sync_folder(target.parent)
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int:
    """Return a descriptor that holds ``folder`` as long as this process lives."""
    with durable.store_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _sweep(store: Path) -> None:
    """Remove what processes left behind that were killed in the middle."""
    for folder in catalog.jobs_folder(store).glob(f"{_STAGED}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime < _YOUNG_S:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
