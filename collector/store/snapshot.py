"""A consistent snapshot of a job's folder, read without locks beside a running writer."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa

from ..errors import NoSuchJobError, StoreError
from . import catalog, durable, segment, small_segments, wal

T = TypeVar("T")

_LOG = re.compile(r"wal-(\d{6,})\.log")
#: A sealing takes tens of milliseconds and happens every few seconds at most: so many changes in a row are no accident.
_TRIES: Final = 50


class Files(NamedTuple):
    """The files of a folder: segments by table, and logs; each by generation."""

    segments: dict[str, dict[int, Path]]
    logs: dict[int, Path]


class Snapshot:
    """The committed content of a job: its record, its segments and its logs."""

    def __init__(self, folder: Path) -> None:
        """Look at ``folder``; FileNotFoundError when it changes meanwhile or is gone, StoreError when it is damaged."""
        self.folder = folder
        self.info = catalog.load(folder)
        self._files = files(folder)
        if catalog.load(folder).sealed != self.info.sealed:
            raise FileNotFoundError(folder)

    @cached_property
    def tail(self) -> list[wal.Contents]:
        """What is not sealed yet, by log."""
        logs = sorted((number, path) for number, path in self._files.logs.items() if number > self.info.sealed)
        return [wal.decode(path.read_bytes(), path) for _, path in logs]

    def segments(self, name: str) -> list[tuple[int, Path]]:
        """Return generation and path of the sealed segments of table ``name``, oldest first: the last generation in each."""
        force = small_segments.in_force(self.info, name, self._files.segments.get(name, ()))
        return [(number, self.folder / segment.file_name(name, number)) for number in force]

    def sealed(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the sealed rows of table ``name``."""
        tables = [segment.read(path, name, columns) for _, path in self.segments(name)]
        return pa.concat_tables([_empty(name, columns), *tables])

    def groups(self, name: str, number: int, traces: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield what ``segment.groups`` does of table ``name`` in the sealed generation ``number``."""
        path = self._files.segments.get(name, {}).get(number)
        yield from () if path is None else segment.groups(path, name, traces, columns)

    def unsealed(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of table ``name`` that are in logs only, in order of arrival."""
        tables = [contents.table(name) for contents in self.tail]
        table = pa.concat_tables([segment.SCHEMAS[name].empty_table(), *tables])
        return table if columns is None else table.select(list(columns))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of table ``name``, or just ``columns`` of them."""
        tail = self.unsealed(name, columns)
        return pa.concat_tables([self.sealed(name, columns), tail])

    def total(self) -> pa.Table:
        """Return the rollup of everything sealed."""
        if self.info.total < 0:
            return segment.SCHEMAS[segment.TOTAL_NAME].empty_table()
        path = self.folder / segment.file_name(segment.TOTAL_NAME, self.info.total)
        return segment.read(path, segment.TOTAL_NAME)


def settled(folder: Path, action: Callable[[Snapshot], T]) -> T:
    """Return ``action`` of a snapshot of ``folder`` during which nothing that it needs was removed."""
    for _ in range(_TRIES):
        try:
            return action(Snapshot(folder))
        except FileNotFoundError:
            if not (folder / catalog.JOB_FILE).exists():
                raise NoSuchJobError(f"the job {folder.name} is not in the store any more") from None
        except OSError as error:
            if error.filename is None:
                raise
            raise durable.unread(Path(error.filename), error) from None
    raise StoreError(f"{folder} lacks files that its {catalog.JOB_FILE} speaks of", "store-damaged")


def files(folder: Path) -> Files:
    """Return the files of ``folder`` by what their names say; FileNotFoundError when it is gone."""
    found = Files({}, {})
    for path in folder.iterdir():
        log, parsed = _LOG.fullmatch(path.name), segment.parse_name(path.name)
        if log:
            found.logs[int(log[1])] = path
        elif parsed:
            found.segments.setdefault(parsed[0], {})[parsed[1]] = path
    return found


def log_file(folder: Path, generation: int) -> Path:
    """Return the log of ``generation``."""
    return folder / f"wal-{generation:06d}.log"


def _empty(name: str, columns: Sequence[str] | None) -> pa.Table:
    table = segment.SCHEMAS[name].empty_table()
    return table if columns is None else table.select(list(columns))
