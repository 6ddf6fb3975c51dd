"""A consistent snapshot of a job's folder, read without locks while a writer may be running."""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa

from ..errors import NoSuchJobError, StoreError
from . import catalog, durable, segment, small_segments, store_files, wal

T = TypeVar("T")

_LOG_NAME = re.compile(r"wal-(\d{6,})\.log")
#: After this number of attempts with missing files and an unchanged job file, the job counts as
#: damaged.
_TRIES: Final = 50
#: Time limit for reading a folder whose job file changes constantly (seconds).
_TIMEOUT_S: Final = 30.0


class Files(NamedTuple):
    """The files of a folder: segments by table, and logs; each by generation."""

    segments: dict[str, dict[int, Path]]
    logs: dict[int, Path]


class Snapshot:
    """The committed content of a job: its job file, its segments and its logs."""

    def __init__(self, folder: Path) -> None:
        """Read ``folder``.

        FileNotFoundError if the folder does not exist, or if a generation is sealed meanwhile.
        StoreError if the job file is damaged.
        """
        self.folder = folder
        version = _job_file_version(folder)
        self.info = catalog.load(folder)
        self._files = files(folder)
        if _job_file_version(folder) != version and catalog.load(folder).sealed != self.info.sealed:
            raise FileNotFoundError(folder)

    @cached_property
    def log(self) -> wal.Contents:
        """The content of the log, which holds the generation that is not sealed yet."""
        path = log_file(self.folder, self.info.sealed + 1)
        return wal.read(path) if self.info.sealed + 1 in self._files.logs else wal.Contents(path, [], 0)

    def segments(self, name: str) -> list[tuple[int, Path]]:
        """Return (last generation, path) of each sealed segment of table ``name``, oldest first."""
        generations = small_segments.generations_in_force(self.info, name, self._files.segments.get(name, ()))
        return [(number, self.folder / segment.file_name(name, number)) for number in generations]

    def sealed(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the sealed rows of table ``name``."""
        tables = [segment.read(path, name, columns) for _, path in self.segments(name)]
        return pa.concat_tables([_empty(name, columns), *tables])

    def groups(self, name: str, generation: int, traces: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield ``segment.groups`` of table ``name`` in the sealed ``generation``."""
        path = self._files.segments.get(name, {}).get(generation)
        yield from () if path is None else segment.groups(path, name, traces, columns)

    def unsealed(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the unsealed rows of table ``name``, in order of arrival."""
        table = self.log.table(name)
        return table if columns is None else table.select(list(columns))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of table ``name``, with all columns or only ``columns``."""
        unsealed_rows = self.unsealed(name, columns)
        return pa.concat_tables([self.sealed(name, columns), unsealed_rows])

    def pieces(self, name: str, start: int) -> Iterator[pa.Table]:
        """Yield the rows of table ``name`` from ``start`` on: of each segment, then of the log."""
        first = sealed = self.info.rows.get(name, 0) - self.info.removed.get(name, 0)
        if start < sealed:
            first = 0
            for _, path in self.segments(name):
                rows = segment.row_count(path)
                if start < first + rows:
                    yield segment.read(path, name).slice(max(0, start - first))
                first += rows
        yield self.unsealed(name).slice(max(0, start - first))

    def check(self, names: Sequence[str]) -> None:
        """Raise StoreError if a file with rows of the tables ``names`` cannot be one of a store.

        FileNotFoundError if one of them is missing.
        """
        for name in names:
            for _, path in self.segments(name):
                store_files.check(path, store_files.SEGMENT)
        if self.info.sealed + 1 in self._files.logs:
            store_files.check(log_file(self.folder, self.info.sealed + 1), store_files.LOG)

    def total(self) -> pa.Table:
        """Return the rollup of all sealed generations."""
        if self.info.total < 0:
            return segment.SCHEMAS[segment.TOTAL_NAME].empty_table()
        path = self.folder / segment.file_name(segment.TOTAL_NAME, self.info.total)
        return segment.read(path, segment.TOTAL_NAME)

    def aggregate(self, name: str, generation: int) -> pa.Table | None:
        """Return the segment of the aggregate ``name`` in ``generation``, None if it has none.

        tfprof 0.2.0 wrote no histograms of step times.
        """
        path = self._files.segments.get(name, {}).get(generation)
        return None if path is None else segment.read(path, name)


def with_stable_snapshot(folder: Path, action: Callable[[Snapshot], T]) -> T:
    """Return the result of ``action`` on a snapshot of ``folder``.

    If files disappear meanwhile, ``action`` is called again on a new snapshot. NoSuchJobError if
    the job was removed, StoreError if it is damaged.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    failed_tries = 0
    while failed_tries < _TRIES and time.monotonic() < deadline:
        version_before = _job_file_version(folder)
        try:
            return action(Snapshot(folder))
        except FileNotFoundError:
            version_now = _job_file_version(folder)
            if version_now is None:
                raise NoSuchJobError(f"the job {folder.name} is not in the store any more") from None
            failed_tries += version_now == version_before
        except OSError as error:
            if error.filename is None:
                raise
            raise durable.unreadable_error(Path(error.filename), error) from None
    raise StoreError(f"{folder} lacks files that its {catalog.JOB_FILE} names", "store-damaged")


def _job_file_version(folder: Path) -> tuple[int, int] | None:
    """Return inode and time of the job file in ``folder``, None if there is none.

    They change when the file is replaced.
    """
    try:
        status = (folder / catalog.JOB_FILE).stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def files(folder: Path) -> Files:
    """Return the logs and segments in ``folder``.

    FileNotFoundError if it does not exist, StoreError if one of them is not a regular file.
    """
    folder_files = Files({}, {})
    with os.scandir(folder) as entries:
        for entry in entries:
            log_match, segment_name = _LOG_NAME.fullmatch(entry.name), segment.parse_name(entry.name)
            if log_match:
                folder_files.logs[int(log_match[1])] = folder / entry.name
            elif segment_name:
                table, generation = segment_name
                folder_files.segments.setdefault(table, {})[generation] = folder / entry.name
            if (log_match or segment_name) and not entry.is_file(follow_symlinks=False):
                raise store_files.irregular_error(folder / entry.name)
    return folder_files


def log_file(folder: Path, generation: int) -> Path:
    """Return the log of ``generation``."""
    return folder / f"wal-{generation:06d}.log"


def _empty(name: str, columns: Sequence[str] | None) -> pa.Table:
    table = segment.SCHEMAS[name].empty_table()
    return table if columns is None else table.select(list(columns))
