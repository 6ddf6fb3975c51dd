"""Sums over all that a store has of a job, to compare what versions read."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tfprof.collector.store.protocols import JobReader
from tfprof.collector.store.schema import JOB_TABLES


def stored_sums(job: JobReader) -> dict[str, Any]:
    """Return the name of a job and, of each table, the rows and the sum or length of each column.

    Samples of the host are not the job's.
    """
    tables = [name for name in JOB_TABLES if name != "host_samples"]
    return {"name": job.info.name, "tables": {name: _sums(job.table(name)) for name in tables}}


def _sums(table: pa.Table) -> dict[str, Any]:
    return {"rows": table.num_rows, **{name: _sum(table[name]) for name in table.column_names}}


def _sum(column: pa.ChunkedArray) -> Any:
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        # Sums of 64-bit numbers may exceed 64 bits.
        return sum(value for value in column.to_pylist() if value is not None)
    if pa.types.is_boolean(column.type):
        return pc.sum(column).as_py() or 0
    return sum(len(value) for value in column.to_pylist() if value is not None)
