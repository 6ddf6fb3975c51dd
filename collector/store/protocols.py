"""The interfaces for reading a store; this folder implements them with local files.

Tables are Arrow tables of ``schema``. Numbers of nodes, devices, labels and outputs refer to NAMES.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa

from ..errors import DamagedJobError
from .catalog import JobInfo
from .sql_queries import Sql

T = TypeVar("T")
#: Rows of one table to store.
Rows = pa.RecordBatch | pa.Table


class RecordedTotals(NamedTuple):
    """``usage`` and ``traced`` of a job file (docs/store.md)."""

    usage: Mapping[str, Sequence[float]]
    traced: Mapping[str, int]


class ExecutionFilter(NamedTuple):
    """A selection of executions by nodes, devices and ascending traces; None selects all."""

    nodes: Collection[int] | None
    devices: Collection[int] | None = None
    traces: Sequence[int] | None = None


class Executions(NamedTuple):
    """The executions of some traces, and the tables that describe them.

    ``ops`` may include executions of other traces; ``traces``, ``allocations`` and
    ``output_memory`` do not. ``canonical``: node -> its canonical device in the whole job.
    """

    ops: pa.Table
    traces: pa.Table
    names: pa.Table
    canonical: Mapping[int, int]
    allocations: pa.Table
    output_memory: pa.Table


class JobReader(Protocol):
    """A reader of one job, or of the samples of one host.

    Each call reads the current content and may raise StoreError.
    """

    @property
    def info(self) -> JobInfo:
        """The content of the job file."""
        ...

    def tags(self) -> tuple[str, ...]:
        """Return the job's tags."""
        ...

    def change_tags(self, change: Callable[[tuple[str, ...]], Sequence[str]]) -> tuple[str, ...]:
        """Replace the tags with the result of ``change``, which gets the current ones; return it.

        StoreError if they cannot be stored, NoSuchJobError if the job was removed.
        """
        ...

    def size(self) -> int:
        """Return the bytes that the job takes in the store, 0 if that is unknown."""
        ...

    def last_write_ns(self) -> int:
        """Return the time of the last change of the job's data (ns, real time), 0 if unknown."""
        ...

    def store_uids(self) -> Sequence[str]:
        """Return the uids, in hexadecimal, of all jobs in the job's store."""
        ...

    def on_one_snapshot(self, action: "Callable[[JobReader], T]") -> T:
        """Return the result of ``action`` on one snapshot of the job.

        ``action`` may be called more than once.
        """
        ...

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table of schema.JOB_TABLES, or only ``columns`` of it.

        Rows are in order of arrival, except in `ops`.
        """
        ...

    def totals(self) -> RecordedTotals:
        """Return the totals of the job file.

        If the job file has no totals, they are read from the tables. StoreError if samples or
        traces are damaged; this is only noticed if the tables are read. NoSuchJobError if the job
        was removed.
        """
        ...

    def pieces(self, name: str, start: int = 0) -> Iterator[pa.Table]:
        """Yield the rows of a table from row ``start`` on, in pieces.

        Those of an ended job are the same each time. Rows of tables in order of arrival keep their
        places.
        """
        ...

    def rollup(self, traces: Iterable[int] | None = None) -> pa.Table:
        """Return the ROLLUP of ``traces``, None for all.

        Nodes have the canonical devices of the whole job.
        """
        ...

    def unit_times(self, rollup: pa.Table, traces: Iterable[int] | None = None) -> pa.Table:
        """Return the time of each node on each device over ``traces``, None for all.

        The columns are node, device and ns: the median time of the traces in which the node ran
        there, times their number (`step_times.unit_times`). ``rollup``: the ROLLUP of ``traces``.
        """
        ...

    def times(self, traces: Iterable[int]) -> pa.Table:
        """Return the time of each node on each device in each of ``traces``.

        The columns are node, device, trace and ns.
        """
        ...

    def executions(self, traces: Collection[int], columns: Sequence[str]) -> Executions:
        """Return the executions of ``traces``, with these columns of `ops`."""
        ...

    def canonical_devices(self) -> dict[int, int]:
        """Return node -> canonical device."""
        ...

    def rows_of_traces(self, name: str, traces: Collection[int]) -> pa.Table:
        """Return the rows of ``traces``, in order of arrival within each trace.

        ``name``: a table with the column `trace`.
        """
        ...

    def host_samples(self) -> pa.Table:
        """Return the samples of the job's host (HOST_SAMPLES), at least those of the job's time.

        The table may be empty.
        """
        ...

    def archive(self) -> Iterator[bytes]:
        """Yield the whole job as one file (`.tfprof`), with its tags and the samples of its host.

        The rows are those of one moment. StoreError if a file of the job cannot be read.
        """
        ...

    def with_sql(self, action: Callable[[Sql], T]) -> T:
        """Return the result of ``action``, a query of ``sql_queries``, on one snapshot of the job.

        ``action`` may be called more than once.
        """
        ...

    def window_labels(self, streams: Collection[int]) -> dict[int, int]:
        """Return node -> one of its labels, for the nodes that profiler sessions recorded.

        Labels on the devices ``streams`` are names of kernels: they count for nodes without others.
        """
        ...


class StoreReader(Protocol):
    """The jobs of a store."""

    @property
    def address(self) -> str:
        """The path or URL of the store, as shown to users."""
        ...

    def jobs(self) -> Sequence[JobReader]:
        """Return all jobs that can be read, in the order in which they were opened."""
        ...

    def read(self) -> tuple[Sequence[JobReader], Sequence[DamagedJobError]]:
        """Return the result of ``jobs``, and the error of each job that cannot be read."""
        ...

    def job(self, selector: str) -> JobReader:
        """Return the job that ``selector`` means (selectors.select).

        NoSuchJobError if it means none or several.
        """
        ...

    def current(self, uid: int) -> JobInfo | None:
        """Return the content of the job file of job ``uid`` as it is now, None if there is none.

        A running job without a collector has the state `stale`.
        """
        ...

    def remove(self, uids: Iterable[int]) -> None:
        """Remove the jobs ``uids``, then the samples of hosts that no job needs.

        StoreError if a removal fails; the jobs before that one are then removed.
        """
        ...
