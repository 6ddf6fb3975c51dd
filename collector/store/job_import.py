"""Imports a whole job: builds it in a hidden folder, then renames the folder into place."""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ...formats.ids import hex_id
from ..errors import StoreError
from . import catalog, durable
from .writer import LocalJobWriter

#: Prefix of folders that readers and collectors ignore.
_STAGED_PREFIX: Final = ".staged-"
#: Minimum age of an abandoned folder (seconds). A younger folder may not be locked yet.
_AGE_MIN_S: Final = 60.0


@contextlib.contextmanager
def new_job_writer(store: Path, host: str) -> Iterator[LocalJobWriter]:
    """Provide the writer of a new job.

    The job appears in ``store`` after the block, unless the block raises. The caller closes the
    writer within the block. StoreError if the store cannot be written.
    """
    uid = secrets.randbits(64) or 1
    with staged_job(store) as folder:
        writer = LocalJobWriter(folder, uid, own_collector(host))
        try:
            yield writer
        finally:
            writer.release()


def own_collector(host: str) -> dict[str, Any]:
    """Return the entry for the collector in the job file of an imported job."""
    return {"host": host, "pid": os.getpid(), "id": ""}


@contextlib.contextmanager
def staged_job(store: Path) -> Iterator[Path]:
    """Provide the folder of a new job, which appears in ``store`` after the block.

    Its name becomes the uid in its job file. If the block raises, nothing is left. StoreError if
    the store cannot be written, or has the job: ``job-exists``.
    """
    catalog.make(store)
    _sweep(store)
    folder = catalog.jobs_folder(store) / f"{_STAGED_PREFIX}{secrets.token_hex(8)}"
    durable.make_folder(folder)
    lock_descriptor = _lock(folder)
    try:
        yield folder
        uid = catalog.load(folder).uid
        target = catalog.job_folder(store, uid)
        with durable.store_errors(target):
            try:
                folder.replace(target)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise exists_error(uid) from None
                raise
            durable.sync_folder(target.parent)
    finally:
        os.close(lock_descriptor)
        shutil.rmtree(folder, ignore_errors=True)


def exists_error(uid: int) -> StoreError:
    """Return the error about job ``uid``, which the store has already."""
    job = hex_id(uid)
    text = f"the job {job} is in the store already: remove it with `tfprof rm {job}`, or use another --store"
    return StoreError(text, "job-exists")


def _lock(folder: Path) -> int:
    """Return a descriptor that locks ``folder`` until it is closed."""
    with durable.store_errors(folder):
        descriptor = durable.open_folder(folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _sweep(store: Path) -> None:
    """Remove the folders of killed imports."""
    for folder in catalog.jobs_folder(store).glob(f"{_STAGED_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.lstat().st_mtime < _AGE_MIN_S:
                continue
            descriptor = durable.open_folder(folder)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
