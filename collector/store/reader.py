"""Everything that is read from a store: no lock, no daemon, only the directory."""

import os
import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from ..errors import NoSuchJobError, StoreError
from . import catalog, lock, trace_ranges
from .catalog import JobInfo
from .snapshot import Snapshot, settled

#: Answers a question in SQL.
Ask = Callable[[str], pa.Table]
T = TypeVar("T")


class Job:
    """One job, or the samples of one host; every call sees what is stored then, be it sealed or in a log."""

    def __init__(self, folder: Path, info: JobInfo, moment: Snapshot | None = None) -> None:
        """Read ``folder``; ``moment``: what every call sees instead of what is stored then."""
        self.folder = folder
        self.info = info
        self._moment = moment

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return table ``name`` of schema.JOB_TABLES, or just ``columns`` of it.

        ``ops`` come by row group and, where sealed, by (node, trace) in each; all others in order of arrival.
        """
        return self.settled(lambda snapshot: snapshot.table(name, columns))

    def rollup(self, traces: Iterable[int] | None = None) -> pa.Table:
        """Return the ROLLUP of all traces, or of those with the numbers ``traces``; such as are not stored count for nothing.

        Nodes belong to their canonical devices in the whole job, as tfprof has it, whichever traces are asked for.
        """
        if traces is None:
            return self.settled(trace_ranges.everything)
        wanted = sorted(set(traces))
        return self.settled(lambda snapshot: trace_ranges.some(snapshot, wanted))

    def times(self, traces: Iterable[int]) -> pa.Table:
        """Return how long each node ran on each device in each of ``traces``: columns trace, node, device, us."""
        wanted = sorted(set(traces))
        return self.settled(lambda snapshot: trace_ranges.by_trace(snapshot, wanted))

    def query(self, sql: str) -> pa.Table:
        """Return what ``sql`` selects from the job's tables (and ``rollup``); UsageError says what is wrong with it."""
        return self.asked(lambda ask: ask(sql))

    def asked(self, action: Callable[[Ask], T]) -> T:
        """Return ``action``, which asks in SQL, as ``query`` does, of the job as it is at one moment; it may be called anew."""
        from .query import asking  # noqa: PLC0415  # duckdb: half of a command's start, used by few

        def answer(snapshot: Snapshot) -> T:
            with asking(snapshot, lambda: trace_ranges.everything(snapshot)) as ask:
                return action(ask)

        return self.settled(answer)

    def at_one_moment(self, action: Callable[["Job"], T]) -> T:
        """Return ``action`` of the job as it is at one moment, which is looked up once; it may be called anew."""
        return self.settled(lambda snapshot: action(Job(self.folder, self.info, snapshot)))

    def settled(self, action: Callable[[Snapshot], T]) -> T:
        """Return ``action`` of what is stored, of which nothing is removed meanwhile; it may be called anew."""
        return settled(self.folder, action) if self._moment is None else action(self._moment)


class Store:
    """A store directory, read only."""

    def __init__(self, path: str | os.PathLike[str], host: str | None = None) -> None:
        """Look at the store at ``path`` from ``host`` (this one); StoreError ``store-missing``, ``store-version``."""
        self.path = Path(path)
        self._host = host or socket.gethostname()
        catalog.check(self.path)

    def jobs(self) -> list[Job]:
        """Return all jobs that can be read, in the order they were opened."""
        return self._read()[0]

    def damaged(self) -> list[StoreError]:
        """Return what is wrong with each job that cannot be read."""
        return self._read()[1]

    def job(self, selector: str) -> Job:
        """Return the job that ``selector`` means (catalog.select); NoSuchJobError when it means none, or several."""
        jobs, errors = self._read()
        by_uid = {job.info.uid: job for job in jobs}
        try:
            return by_uid[catalog.select([job.info for job in jobs], selector).uid]
        except NoSuchJobError:
            for error in errors:
                if selector.lower() in str(error):
                    raise error from None
            raise

    def host(self, name: str) -> Job:
        """Return the samples of host ``name``; NoSuchJobError when there are none."""
        folder = catalog.host_folder(self.path, name)
        try:
            return Job(folder, catalog.load(folder))
        except FileNotFoundError:
            raise NoSuchJobError(f"the store has no samples of host {name}") from None

    def _read(self) -> tuple[list[Job], list[StoreError]]:
        jobs: list[Job] = []
        errors: list[StoreError] = []
        holder = lock.holder(catalog.lock_file(self.path, self._host))
        for folder in catalog.folders(self.path):
            try:
                jobs.append(Job(folder, catalog.judged(catalog.load(folder), self._host, holder)))
            except FileNotFoundError:
                continue  # just created, or just removed
            except StoreError as error:
                errors.append(error)
        return sorted(jobs, key=lambda job: job.info.opened_ns), errors
