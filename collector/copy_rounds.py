"""Copies a store that is written into another one, round by round (the setting `copy-to`).

`python -m tfprof.collector.copy_rounds STORE URL` copies until its standard output is closed,
or its parent has ended. It prints the progress of each round as a line of JSON.
"""

import contextlib
import json
import math
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from ..commands.streams import print_lines
from ..formats.ids import hex_id
from .errors import NoSuchJobError, StoreError, TfprofError
from .store import catalog, store_files
from .store.archive import MARGIN_NS
from .store.catalog import MAY_CONTINUE, RUNNING
from .store.durable import make_folder, replace, store_errors
from .store.opening import open_target
from .store.reader import LocalJob, LocalStore
from .store.row_follower import FileVersion

if TYPE_CHECKING:
    from .store.opening import StoreTarget

#: Seconds from the start of a round to that of the next one.
INTERVAL_S: Final = 10.0
#: Added to the niceness of the collector: this process has the lowest priority.
NICENESS: Final = 19
#: Folder of a store with the uids of the jobs that have been copied, in a file for each target.
FOLDER: Final = "copied"
#: Time after its end for which a job is copied again: samples of its host still arrive (ns).
_SETTLING_NS: Final = MARGIN_NS + 10 * 10**9
#: Times of files are that much older than the clock, or less (ns).
_TICK_NS: Final = 20_000_000
#: Errors about the target as a whole; others are about one job.
_TARGET_SLUGS: Final = frozenset(
    {
        *("engine-away", "engine-refused", "engine-version", "engine-cluster"),
        *("store-missing", "store-version", "password-file"),
    }
)
#: Errors that may pass without a change of the job: a disk is full.
_PASSING_SLUGS: Final = frozenset({"engine-answer", "store-full", "store-unwritable"})


class _Version(NamedTuple):
    """Identifies the content of a job's files: job file and tags."""

    job: FileVersion
    tags: FileVersion | None


class CopyRounds:
    """Copies the jobs of the folder ``store`` to ``url``; each round copies what is new.

    A round ends early if the process has lost its parent. Jobs that were copied to their end are
    written down in the folder. If they are removed from the target, they are not copied again.
    """

    def __init__(self, store: Path, url: str) -> None:
        self._store, self._url, self._parent = store, url, os.getppid()
        self._target: StoreTarget | None = None
        self._copied: _CopiedJobs | None = None
        self._settled: dict[str, _Version] = {}  # jobs that are left out until they change
        self._due_ns: dict[str, int] = {}  # when ended jobs are copied for the last time
        self._failed: dict[str, StoreError] = {}
        self._rows = 0
        self._copied_ns: int | None = None

    def run(self) -> dict[str, Any]:
        """Copy what is new; return the progress.

        `copied_ns`: start of the last complete round (real time); `rows`: rows that were copied;
        `failed`: number of jobs that cannot be copied; `error`: why not all is copied, else None.
        """
        started_ns = time.time_ns()
        error: TfprofError | None = None
        try:
            self._copied = self._copied or _CopiedJobs(self._store, self._url)
            for job, version in self._changed_jobs():
                if os.getppid() != self._parent:
                    break
                self._copy_job(job, version)
            else:
                if not any(failed.slug in _PASSING_SLUGS for failed in self._failed.values()):
                    self._copied.set_time(started_ns)
                    self._copied_ns = started_ns
            error = next(iter(self._failed.values()), None)
        except TfprofError as target_error:
            self._target = None  # the next round connects again, with the settings of then
            error = target_error
        reason = None if error is None else {"slug": error.slug, "text": error.args[0]}
        return {"copied_ns": self._copied_ns, "rows": self._rows, "failed": len(self._failed), "error": reason}

    def _changed_jobs(self) -> Iterator[tuple[LocalJob, _Version]]:
        """Yield the jobs that run or have changed since they were copied."""
        store = LocalStore(self._store)
        holders = store.holders()
        folders = catalog.folders(self._store)
        names = {folder.name for folder in folders}
        self._settled = {name: version for name, version in self._settled.items() if name in names}
        self._due_ns = {name: due_ns for name, due_ns in self._due_ns.items() if name in names}
        self._failed = {name: error for name, error in self._failed.items() if name in names}
        for folder in folders:
            try:
                version = _version(folder)
                is_due = time.time_ns() >= self._due_ns.get(folder.name, math.inf)
                if version == self._settled.get(folder.name) and not is_due:
                    continue
                info = store.with_holder(catalog.load(folder), folder, holders)
            except OSError:  # just removed
                continue
            except StoreError as error:
                self._failed[folder.name], self._settled[folder.name] = error, version  # until it changes
                continue
            yield LocalJob(folder, info), version

    def _copy_job(self, job: LocalJob, version: _Version) -> None:
        """Copy what is new of ``job``; StoreError if the target as a whole takes nothing."""
        name = job.info.hex
        self._target = self._target or open_target(self._url)
        try:
            self._add(self._target, job, version)
            self._failed.pop(name, None)
        except NoSuchJobError:
            return
        except StoreError as error:
            if error.slug in _TARGET_SLUGS:
                raise
            self._failed[name] = error
            if error.slug in _PASSING_SLUGS:
                return
        if job.info.state != RUNNING:
            self._settled[name] = version

    def _add(self, target: "StoreTarget", job: LocalJob, version: _Version) -> None:
        info = job.info
        if info.opened_ns < target.oldest_ns:
            return
        assert self._copied is not None
        is_known = info.uid in self._copied and info.state not in MAY_CONTINUE
        is_changed = info.hex in self._settled or self._copied.are_newer(version.tags)
        if is_known and not (is_changed and target.has(info.uid)):
            return
        copied = target.add(job)
        self._rows += copied.rows - copied.earlier
        self._due_ns.pop(info.hex, None)
        settled_ns = (info.closed_ns or 0) + _SETTLING_NS
        if time.time_ns() < settled_ns:
            self._due_ns[info.hex] = settled_ns
        elif info.state not in MAY_CONTINUE and not is_known:
            self._copied.add(info.uid)


class _CopiedJobs:
    """The uids of the jobs that were copied to ``url`` to their end.

    The time of their file is the start of the last complete round.
    """

    def __init__(self, store: Path, url: str) -> None:
        self._path = store / FOLDER / catalog.file_name(url)
        make_folder(self._path.parent)
        self._time_ns = 0
        try:
            self._time_ns = self._path.stat().st_mtime_ns
            self._uids = set(store_files.read(self._path, store_files.COPIED).decode(errors="replace").split())
        except FileNotFoundError:
            self._uids = set()

    def __contains__(self, uid: int) -> bool:
        return hex_id(uid) in self._uids

    def are_newer(self, tags: FileVersion | None) -> bool:
        """Whether ``tags`` were changed after the last complete round."""
        return tags is not None and tags.changed_ns > self._time_ns

    def set_time(self, started_ns: int) -> None:
        """Note that a complete round began at ``started_ns``."""
        self._time_ns = started_ns - _TICK_NS
        with contextlib.suppress(OSError):  # no job has been copied to its end
            self._keep_time()

    def add(self, uid: int) -> None:
        """Write down ``uid``; StoreError if that fails."""
        self._uids.add(hex_id(uid))
        with store_errors(self._path):
            replace(self._path, "".join(f"{each}\n" for each in sorted(self._uids)).encode())
            self._keep_time()

    def _keep_time(self) -> None:
        os.utime(self._path, ns=(self._time_ns, self._time_ns))


def _version(folder: Path) -> _Version:
    """Return the version of the job in ``folder``; FileNotFoundError if there is none."""
    job = FileVersion.of(folder / catalog.JOB_FILE)
    try:
        return _Version(job, FileVersion.of(folder / catalog.TAGS_FILE))
    except FileNotFoundError:
        return _Version(job, None)


def main() -> int:
    """Copy until nobody reads the progress; return the exit status."""
    store, url = sys.argv[1:]
    os.nice(NICENESS)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    rounds = CopyRounds(Path(store), url)
    reader = select.poll()
    reader.register(1, 0)  # it reports that the other end is closed
    while True:
        started = time.monotonic()
        progress = rounds.run()
        pa.default_memory_pool().release_unused()
        try:
            print_lines([json.dumps(progress)])
        except BrokenPipeError:
            os._exit(0)  # the interpreter would flush the closed stream again
        if reader.poll(1000 * max(1.0, started + INTERVAL_S - time.monotonic())):
            return 0


if __name__ == "__main__":
    sys.exit(main())
