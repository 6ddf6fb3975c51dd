"""A consistent snapshot of a job's folder, read without locks while a writer may be running."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa

from ..errors import NoSuchJobError, StoreError
from . import catalog, durable, segment, small_segments, wal

T = TypeVar("T")

_LOG_NAME = re.compile(r"wal-(\d{6,})\.log")
#: Attempts with missing files and an unchanged job file, after which the job counts as damaged.
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
        self.info = catalog.load(folder)
        self._files = files(folder)
        if catalog.load(folder).sealed != self.info.sealed:
            raise FileNotFoundError(folder)

    @cached_property
    def unsealed_logs(self) -> list[wal.Contents]:
        """The content of each unsealed log, oldest first."""
        logs = sorted((number, path) for number, path in self._files.logs.items() if number > self.info.sealed)
        return [wal.decode(path.read_bytes(), path) for _, path in logs]

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
        tables = [contents.table(name) for contents in self.unsealed_logs]
        table = pa.concat_tables([segment.SCHEMAS[name].empty_table(), *tables])
        return table if columns is None else table.select(list(columns))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of table ``name``, with all columns or only ``columns``."""
        unsealed_rows = self.unsealed(name, columns)
        return pa.concat_tables([self.sealed(name, columns), unsealed_rows])

    def total(self) -> pa.Table:
        """Return the rollup of all sealed generations."""
        if self.info.total < 0:
            return segment.SCHEMAS[segment.TOTAL_NAME].empty_table()
        path = self.folder / segment.file_name(segment.TOTAL_NAME, self.info.total)
        return segment.read(path, segment.TOTAL_NAME)


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
    """Return the logs and segments in ``folder``; FileNotFoundError if it does not exist."""
    folder_files = Files({}, {})
    for path in folder.iterdir():
        log_match, segment_name = _LOG_NAME.fullmatch(path.name), segment.parse_name(path.name)
        if log_match:
            folder_files.logs[int(log_match[1])] = path
        elif segment_name:
            table, generation = segment_name
            folder_files.segments.setdefault(table, {})[generation] = path
    return folder_files


def log_file(folder: Path, generation: int) -> Path:
    """Return the log of ``generation``."""
    return folder / f"wal-{generation:06d}.log"


def _empty(name: str, columns: Sequence[str] | None) -> pa.Table:
    table = segment.SCHEMAS[name].empty_table()
    return table if columns is None else table.select(list(columns))
