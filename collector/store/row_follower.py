"""Reads the new rows of some tables of a job from the end of its log."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from . import catalog, durable
from .catalog import JobInfo
from .snapshot import Snapshot, log_file, with_stable_snapshot
from .wal import Contents, read_after


class FileVersion(NamedTuple):
    """Identifies a version of a file's content."""

    inode: int
    changed_ns: int
    size: int

    @classmethod
    def of(cls, path: Path) -> "FileVersion":
        """Return the current version of the file at ``path``; OSError if there is none."""
        status = path.stat()
        return cls(status.st_ino, status.st_mtime_ns, status.st_size)


class RowFollower:
    """A follower of the rows of a job; `new_rows` is cheap if there are none.

    Rows are counted. For this reason, sealing, merging and a new collector neither repeat nor skip
    rows. This needs tables in order of arrival, so `ops` cannot be followed. A job that was removed
    and stored again starts from its first row.
    """

    def __init__(self, folder: Path, tables: Sequence[str]) -> None:
        """Follow ``tables`` of the job or host in ``folder``.

        The first `new_rows` returns all stored rows.
        """
        self.folder = folder
        self._tables = tuple(tables)
        self._version: FileVersion | None = None
        self._info: JobInfo | None = None
        self._row_counts = dict.fromkeys(self._tables, 0)
        self._log = Contents(folder, [], 0)  # the followed log, after the appends that were already read

    @property
    def info(self) -> JobInfo:
        """The content of the job file at the last call of `new_rows`."""
        assert self._info is not None, "nothing was read yet"
        return self._info

    def new_rows(self) -> dict[str, pa.Table]:
        """Return the rows since the last call by table, in order of arrival.

        Tables without new rows are left out. NoSuchJobError if the job was removed, StoreError if
        it is damaged.
        """
        try:
            return self._rows_of_log()
        except FileNotFoundError:  # just sealed, or removed: the whole folder is read to find out
            return self._rows_of_folder()
        except OSError as error:
            raise durable.unreadable_error(
                self.folder if error.filename is None else Path(error.filename), error
            ) from None

    def _rows_of_log(self) -> dict[str, pa.Table]:
        version = FileVersion.of(self.folder / catalog.JOB_FILE)
        if version != self._version:
            info = catalog.load(self.folder)
            if self._is_new_job(info) or log_file(self.folder, info.sealed + 1) != self._log.path:
                return self._rows_of_folder()
            self._info, self._version = info, version
        try:
            size = self._log.path.lstat().st_size
        except FileNotFoundError:
            if self._log.end:
                raise
            return {}
        if size == self._log.end:
            return {}
        if size < self._log.end:
            return self._rows_of_folder()
        return self._rows_of_contents(read_after(self._log))

    def _rows_of_folder(self) -> dict[str, pa.Table]:
        """Return the new rows, which are found by counting all rows.

        Used on the first call, and if the followed log was sealed or replaced.
        """
        version = None
        with contextlib.suppress(OSError):
            version = FileVersion.of(self.folder / catalog.JOB_FILE)
        new_rows = with_stable_snapshot(self.folder, self._rows_of_snapshot)
        self._version = version
        return new_rows

    def _is_new_job(self, info: JobInfo) -> bool:
        """Whether the job was removed and stored again since the last call."""
        return self._info is None or info.opened_ns != self._info.opened_ns

    def _rows_of_snapshot(self, snapshot: Snapshot) -> dict[str, pa.Table]:
        info = snapshot.info
        new_tables: dict[str, pa.Table] = {}
        row_counts = dict.fromkeys(self._tables, 0) if self._is_new_job(info) else dict(self._row_counts)
        for name in self._tables:
            removed_count = info.removed.get(name, 0)
            if info.rows.get(name, 0) == row_counts[name]:
                table, skipped_count = snapshot.unsealed(name), 0
            else:
                table, skipped_count = snapshot.table(name), max(0, row_counts[name] - removed_count)
                row_counts[name] = removed_count
            row_counts[name] += table.num_rows
            if table.num_rows > skipped_count:
                new_tables[name] = table.slice(skipped_count)
        self._info, self._row_counts = info, row_counts
        self._log = snapshot.log._replace(appends=[])
        return new_tables

    def _rows_of_contents(self, contents: Contents) -> dict[str, pa.Table]:
        names = {name for append in contents.appends for name, _ in append.batches}
        new_tables = {name: contents.table(name) for name in self._tables if name in names}
        for name, table in new_tables.items():
            self._row_counts[name] += table.num_rows
        self._log = contents._replace(appends=[])
        return new_tables
