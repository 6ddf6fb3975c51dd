"""Reads the new rows of followed jobs: from a folder, or from any other store."""

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import pyarrow as pa

from ..errors import StoreError
from ..store import catalog
from ..store.catalog import STALE, JobInfo
from ..store.protocols import JobReader, StoreReader
from ..store.reader import LocalJob, LocalStore
from ..store.row_follower import RowFollower
from ..store.selectors import short_ids

_TABLES: Final = ("spans", "events")
#: Minimum interval of readings (s): what is copied while jobs run changes every ten seconds.
READING_S: Final = 5.0


class FollowedFolder:
    """A folder, of which only what has changed is read."""

    def __init__(self, store: LocalStore) -> None:
        """Follow jobs of ``store``."""
        self._store = store

    def rows(self, job: JobReader) -> RowFollower:
        """Return the rows of ``job``, from its first row on."""
        return RowFollower(catalog.job_folder(self._store.path, job.info.uid), _TABLES)

    def new_jobs(self, known: Collection[int]) -> Iterable[JobReader]:
        """Yield the readable jobs without those of the uids ``known``."""
        for folder in catalog.folders(self._store.path):
            if int(folder.name, 16) not in known:
                try:
                    yield LocalJob(folder, catalog.load(folder))
                except (FileNotFoundError, StoreError):  # it is being created or removed, or is damaged
                    continue

    def short_id(self, info: JobInfo) -> str:
        """Return the shortest unique start of a job's id."""
        return short_ids([folder.name for folder in catalog.folders(self._store.path)])[info.hex]

    def is_stale(self, info: JobInfo) -> bool:
        """Whether a running job has no collector any more."""
        return self._store.with_stale_state(info).state == STALE


class PolledStore:
    """A store that is read again every READING_S."""

    def __init__(self, store: StoreReader) -> None:
        """Follow jobs of ``store``."""
        self._store = store

    def rows(self, job: JobReader) -> "PolledRows":
        """Return the rows of ``job``, from its first row on."""
        return PolledRows(self._store, job.info)

    def new_jobs(self, known: Collection[int]) -> Iterable[JobReader]:
        """Return the readable jobs without those of the uids ``known``."""
        return [job for job in self._store.jobs() if job.info.uid not in known]

    def short_id(self, info: JobInfo) -> str:
        """Return the shortest unique start of a job's id."""
        return short_ids([job.info.hex for job in self._store.jobs()])[info.hex]

    def is_stale(self, _info: JobInfo) -> bool:
        """Return False: a stale job of such a store has this state."""
        return False


class PolledRows:
    """The rows of a job, which are read again every READING_S; `info`: its job file then."""

    def __init__(self, store: StoreReader, info: JobInfo) -> None:
        """Read the rows of the job ``info`` of ``store``."""
        self.info = info
        self._store = store
        self._counts = dict.fromkeys(_TABLES, 0)
        self._read_s = float("-inf")

    def new_rows(self) -> Mapping[str, pa.Table]:
        """Return the rows since the last call by table; errors as for `RowFollower`."""
        now = time.monotonic()
        if now - self._read_s < READING_S:
            return {}
        self._read_s = now
        job = self._store.job(self.info.hex)
        self.info = job.info
        return rows_since(job, self._counts)


#: The rows of a job that is followed.
FollowedRows = RowFollower | PolledRows


def rows_since(job: JobReader, counts: dict[str, int]) -> dict[str, pa.Table]:
    """Return the rows of the tables in ``counts`` after the first ones, and count them.

    ``counts``: how many rows of each table were read. It stays as it is if a table cannot be read.
    Tables without new rows are left out.
    """
    pieces = {name: [piece for piece in job.pieces(name, start) if piece.num_rows] for name, start in counts.items()}
    new_rows = {name: pa.concat_tables(parts) for name, parts in pieces.items() if parts}
    counts.update({name: counts[name] + rows.num_rows for name, rows in new_rows.items()})
    return new_rows


def followed(store: StoreReader) -> FollowedFolder | PolledStore:
    """Return the source of new jobs and rows of ``store``."""
    return FollowedFolder(store) if isinstance(store, LocalStore) else PolledStore(store)
