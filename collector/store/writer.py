"""The writer of a store: appends rows to logs, and seals the logs (docs/store.md).

A store has one writer per host.
"""

import contextlib
import math
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ..errors import StoreError
from . import catalog, durable, lock, retention, segment, shared, store_files
from .catalog import RUNNING, JobInfo
from .columns import pc
from .protocols import Rows
from .sealing import LogState, seal, tidy
from .small_segments import generations_in_force
from .snapshot import Snapshot, files, log_file, with_stable_snapshot
from .totals import Totals, of_tables
from .wal import WAL_VERSION, Contents, Log, encode

#: Rows of ops, bytes of log and seconds after which a generation is sealed.
SEAL_ROWS: Final = 100_000
SEAL_BYTES: Final = 16 << 20
SEAL_SECONDS: Final = 600.0
#: Appends after which a generation is sealed. Sealing so many appends blocks the other jobs for
#: a third of a second.
SEAL_APPENDS: Final = 2_000
#: Seconds between fsyncs of a log, and between writes of counters.
SYNC_SECONDS: Final = 5.0
#: Seconds until a failed sealing is repeated.
RETRY_SECONDS: Final = 2.0
#: Maximum number of logs that one tick fsyncs: acks wait until the tick ends, and some disks are
#: slow. With fewer jobs it is one for each LOGS_A_SYNC, so that fsyncs do not come all at once.
SYNCS_A_TICK: Final = 8
LOGS_A_SYNC: Final = 40


class LocalJobWriter:
    """A writer of the tables of one job or host; ``LocalStoreWriter`` opens it.

    After a StoreError, the stored rows are as before.
    """

    def __init__(self, folder: Path, uid: int, collector: Mapping[str, Any]) -> None:
        """Open or create ``folder``, and recover the log of an interrupted collector.

        StoreError if it is damaged; then nothing is written.
        """
        durable.make_folder(folder)
        self.folder = folder
        self._folder_id = durable.FileId.of(folder)
        self._log: Log | None = None
        self._is_old_log = False  # whether the log has appends of an older version
        self.last_sync = self._retry_at = -math.inf
        self._log_since: float | None = None
        self._is_job_file_dirty = False
        try:
            self.info = catalog.load(folder)
        except FileNotFoundError:
            self.info = JobInfo(uid, collector=collector)
            catalog.save(folder, self.info)
        contents, self._log_state, self._totals = with_stable_snapshot(
            folder, lambda snapshot: (snapshot.log, LogState.of_snapshot(snapshot), _totals(snapshot))
        )
        if self.info.collector != collector:
            self._save(replace(self.info, collector=collector))
        _remove_leftovers(folder, self.info)
        self._recover(contents)

    def append(self, tables: Mapping[str, Rows], about: int = 0, last: int = 0) -> None:
        """Store rows by table, and ``last``, the number of the last message of wire type ``about``.

        Either everything is stored, or nothing. After the call, the rows survive the death of this
        process and may be acked. StoreError ``store-full`` or ``store-unwritable``: nothing is
        stored, and the append can be retried. StoreError ``store-removed``: every further append
        fails, too.
        """
        log = self._open_log()
        size = log.size
        log.append(encode(tables, about, last))
        if self.is_gone:
            log.take_back(size)  # the folder may still be there, and then the append is repeated
            raise StoreError(f"{self.folder} was removed or moved away", "store-removed")
        self._log_state.add(tables, about, last)
        if self._totals is not None:
            self._totals.add(tables)

    @property
    def is_gone(self) -> bool:
        """Whether the folder or its log was removed or moved, so that appends would be lost."""
        is_moved = durable.FileId.of(self.folder) != self._folder_id
        return is_moved or (self._log is not None and self._log.is_gone)

    def forget(self) -> None:
        """Close the files of a removed folder without writing."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def acked(self, about: int) -> int:
        """Return the number of the last stored message of wire type ``about``, 0 for none."""
        return self._log_state.acked.get(about, 0)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all stored rows of table ``name``."""
        return with_stable_snapshot(self.folder, lambda snapshot: snapshot.table(name, columns))

    def set_identity(self, identity: Mapping[str, Any]) -> None:
        """Store the body of OPEN and mark the job as running."""
        if identity != self.info.identity or self.info.state != RUNNING:
            self._save(replace(self.info, identity=dict(identity), state=RUNNING, end={}, closed_ns=None))

    def set_counters(self, counters: Mapping[str, Any]) -> None:
        """Keep the body of COUNTERS for the next ``sync_if_due``."""
        self.info = replace(self.info, counters=dict(counters))
        self._is_job_file_dirty = True

    def close(self, state: str, end: Mapping[str, Any] | None = None) -> None:
        """Seal everything and store the job's end: its state and the body of CLOSE.

        The writer can still be used.
        """
        self.seal()
        self._save(replace(self.info, state=state, end=dict(end or {}), closed_ns=time.time_ns()))

    def seal(self) -> None:
        """Seal the current generation, if its log has any appends."""
        log, info_before = self._log, self.info
        if log is None or not self._log_state.appends:
            return
        pa.default_memory_pool().release_unused()  # sealing briefly needs much memory
        self.info = seal(self.folder, info_before, self._log_state, log.read())
        self._log = None
        self._log_state.clear()
        log.close()
        tidy(self.folder, info_before, self.info, log.path)
        pa.default_memory_pool().release_unused()

    def remove_before(self, name: str, before_ns: int) -> None:
        """Remove the oldest segments of table ``name`` whose `t_ns` are all below ``before_ns``.

        The last segment and the log stay. A damaged segment stays, and so do all later ones.
        """
        numbers, removed_numbers, rows = list(self.info.parts.get(name, ())), [], 0
        with contextlib.suppress(OSError, StoreError):
            while numbers[1:]:
                times = segment.read(self.folder / segment.file_name(name, numbers[0]), name, ["t_ns"])["t_ns"]
                if pc.max(times).as_py() >= before_ns:
                    break
                removed_numbers.append(numbers.pop(0))
                rows += len(times)
        if not removed_numbers:
            return
        removed = {**self.info.removed, name: self.info.removed.get(name, 0) + rows}
        self._save(replace(self.info, parts={**self.info.parts, name: numbers}, removed=removed))
        with durable.store_errors(self.folder):
            for number in removed_numbers:
                (self.folder / segment.file_name(name, number)).unlink(missing_ok=True)

    def seal_if_due(self, now: float) -> bool:
        """Seal the generation if it is large or old enough; ``now``: monotonic clock in seconds."""
        if self._log is None or not self._log_state.appends:
            return False
        if self._log_since is None:
            self._log_since = now
        state = self._log_state
        has_many_rows = state.rows.get("ops", 0) >= SEAL_ROWS or state.appends >= SEAL_APPENDS
        is_large = has_many_rows or self._log.size >= SEAL_BYTES
        if now < self._retry_at or (not is_large and now - self._log_since < SEAL_SECONDS):
            return False
        self._retry_at = now + RETRY_SECONDS
        self.seal()
        self._retry_at = -math.inf
        return True

    def sync_if_due(self, now: float) -> bool:
        """Fsync the log and write counters if that is due; return whether it was due.

        It is due at most once in SYNC_SECONDS.
        """
        is_log_dirty = self._log is not None and self._log.is_dirty
        if now - self.last_sync < SYNC_SECONDS or not (is_log_dirty or self._is_job_file_dirty):
            return False
        self.last_sync = now
        if self._log is not None:
            self._log.sync()
        if self._is_job_file_dirty:
            self._save(self.info)
        return True

    def release(self) -> None:
        """Write pending data and close the files; the job's state is unchanged."""
        try:
            if self._is_job_file_dirty:
                self._save(self.info)
            if self._log is not None:
                self._log.sync()
        finally:
            if self._log is not None:
                self._log.close()
                self._log = None

    def _save(self, info: JobInfo) -> None:
        usage, traced = self._totals.values() if self._totals is not None else (None, None)
        info = replace(info, usage=usage, traced=traced)
        catalog.save(self.folder, info)
        self.info = info
        self._is_job_file_dirty = False

    def _open_log(self) -> Log:
        """Return a log of this version, which takes appends.

        A log of another version, and one that grew because it could not be sealed, is sealed first.
        """
        is_full = self._log is not None and self._log.size >= store_files.LOG_BYTES_MAX
        if self._is_old_log or is_full:
            self.seal()
            self._is_old_log = False
        if self._log is None:
            self._log = Log(log_file(self.folder, self.info.sealed + 1))
            self._log_since = None
        return self._log

    def _recover(self, contents: Contents) -> None:
        is_old = contents.version != WAL_VERSION
        self._is_old_log = is_old and bool(contents.appends)
        if contents.end:
            self._log = Log(contents.path, 0 if is_old and not contents.appends else contents.end)


def _remove_leftovers(folder: Path, info: JobInfo) -> None:
    """Remove from ``folder`` the leftovers of an interrupted sealing."""
    folder_files = files(folder)
    leftovers = [path for number, path in folder_files.logs.items() if number <= info.sealed]
    for name, generations in folder_files.segments.items():
        numbers_in_force = set(generations_in_force(info, name, generations))
        leftovers += [path for number, path in generations.items() if number not in numbers_in_force]
    leftovers += folder.glob(".*.tmp")
    with durable.store_errors(folder):
        for path in leftovers:
            path.unlink(missing_ok=True)


def _totals(snapshot: Snapshot) -> Totals | None:
    """Return the totals of what is stored, None if a segment is damaged or missing."""
    try:
        return Totals(*of_tables(snapshot.table))
    except (StoreError, FileNotFoundError):
        return None


class LocalStoreWriter:
    """A writer of all jobs of one host in a store.

    It holds the collector's lock until ``close``.
    """

    def __init__(self, path: str | os.PathLike[str], host: str) -> None:
        """Open or create the store at ``path``.

        StoreError ``store-in-use`` names the other writer, ``store-version`` both versions,
        ``store-unwritable`` the reason.
        """
        self.path = Path(path)
        catalog.make(self.path)
        self.collector = {"host": host, "pid": os.getpid(), "id": secrets.token_hex(8)}
        self._lock = self._taken_lock()
        self._folder_id = durable.FileId.of(self.path)
        self._writers: dict[Path, LocalJobWriter] = {}

    def _taken_lock(self) -> lock.Lock:
        """Lock the store. The service of a shared store starts one collector for each user."""
        path = catalog.lock_file(self.path, str(self.collector["host"]))
        return lock.take(path, self.collector, is_only_writer=shared.owner_of(self.path) is not None)

    def job(self, uid: int) -> LocalJobWriter:
        """Return the writer of job ``uid``, creating the job if it is new."""
        return self._writer(catalog.job_folder(self.path, uid), uid)

    def host(self, name: str) -> LocalJobWriter:
        """Return the writer of the samples of host ``name``."""
        return self._writer(catalog.host_folder(self.path, name), 0)

    @property
    def is_gone(self) -> bool:
        """Whether the store was removed or moved since it was opened."""
        return durable.FileId.of(self.path) != self._folder_id

    def renew(self) -> None:
        """Recreate and lock a removed store; open writers stay as they are.

        StoreError as on opening.
        """
        catalog.make(self.path)
        new_lock = self._taken_lock()
        self._lock.release()
        self._lock = new_lock
        self._folder_id = durable.FileId.of(self.path)

    def forget(self, writer: LocalJobWriter) -> None:
        """Drop a writer whose folder is gone."""
        self._writers.pop(writer.folder, None)
        writer.forget()

    @property
    def lost_hosts(self) -> list[LocalJobWriter]:
        """Writers of host samples whose folder is gone."""
        return [writer for writer in self._writers.values() if not writer.info.uid and writer.is_gone]

    def trim_hosts(self) -> None:
        """Remove the samples of hosts that no stored job needs.

        For a host whose samples this collector stores, remove the segments whose samples were all
        taken more than a minute before the start of its first stored job. For any other host
        without a running collector, remove all samples if no job of the host is stored. If a job
        cannot be read, remove nothing.
        """
        needed_from = retention.samples_needed_from(self.path)
        if needed_from is None:
            return
        writers = [writer for writer in self._writers.values() if not writer.info.uid and not writer.is_gone]
        for writer in writers:
            writer.remove_before("host_samples", needed_from.get(writer.folder, time.time_ns()))
        retention.remove_hosts(self.path, {*needed_from, *(writer.folder for writer in writers)})

    def release(self, uid: int) -> None:
        """Close the files of job ``uid``; ``job`` opens them again."""
        writer = self._writers.pop(catalog.job_folder(self.path, uid), None)
        if writer is not None:
            writer.release()

    def tick(self, now: float, on_error: Callable[[int, Exception], None]) -> None:
        """Run the due work: fsync some logs, and seal at most one generation.

        Logs that have waited longest are synced first. ``now``: monotonic clock in seconds. Raises
        the first StoreError after the work for all jobs; passes any other exception to
        ``on_error``, with the job's uid.
        """
        failures = []
        syncs, has_sealed = 0, False
        syncs_max = min(SYNCS_A_TICK, 1 + len(self._writers) // LOGS_A_SYNC)
        for writer in sorted(self._writers.values(), key=lambda writer: writer.last_sync):
            try:
                syncs += syncs < syncs_max and writer.sync_if_due(now)
                has_sealed = has_sealed or writer.seal_if_due(now)
            except StoreError as error:
                failures.append(error)
            except Exception as error:  # noqa: BLE001  # the failure stays within this job
                on_error(writer.info.uid, error)
        if failures:
            raise failures[0]

    def close(self) -> None:
        """Close the files of all jobs, release the lock, then raise the first error."""
        writers, self._writers = list(self._writers.values()), {}
        failures = []
        for writer in writers:
            try:
                writer.release()
            except StoreError as error:
                failures.append(error)
        self._lock.release()
        if failures:
            raise failures[0]

    def _writer(self, folder: Path, uid: int) -> LocalJobWriter:
        writer = self._writers.get(folder)
        if writer is None:
            writer = self._writers[folder] = LocalJobWriter(folder, uid, self.collector)
        return writer
