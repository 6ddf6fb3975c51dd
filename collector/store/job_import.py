"""Imports a whole job: builds it in a hidden folder, then renames the folder into place."""

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...formats.ids import hex_id
from . import catalog, durable
from .writer import LocalJobWriter

#: Prefix of folders that readers and collectors ignore.
_STAGED_PREFIX: Final = ".staged-"
#: Minimum age of an abandoned folder (seconds); a younger one may not be locked yet.
_AGE_MIN_S: Final = 60.0


@contextlib.contextmanager
def new_job_writer(store: Path, host: str) -> Iterator[LocalJobWriter]:
    """Provide the writer of a new job.

    The job appears in ``store`` after the block, unless the block raises. The caller closes the
    writer within the block. StoreError if the store cannot be written.
    """
    catalog.make(store)
    _sweep(store)
    uid = secrets.randbits(64) or 1
    folder = catalog.jobs_folder(store) / f"{_STAGED_PREFIX}{hex_id(uid)}"
    durable.make_folder(folder)
    lock_descriptor = _lock(folder)
    try:
        writer = LocalJobWriter(folder, uid, {"host": host, "pid": os.getpid(), "id": ""})
        try:
            yield writer
        finally:
            writer.release()
        target = catalog.job_folder(store, uid)
        with durable.store_errors(target):
            folder.replace(target)
            durable.sync_folder(target.parent)
    finally:
        os.close(lock_descriptor)
        shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path) -> int:
    """Return a descriptor that locks ``folder`` until it is closed."""
    with durable.store_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _sweep(store: Path) -> None:
    """Remove the folders of killed imports."""
    for folder in catalog.jobs_folder(store).glob(f"{_STAGED_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime < _AGE_MIN_S:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
