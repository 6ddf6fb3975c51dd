"""SQL over a job: DuckDB in memory, never the file of record."""

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
from tfprof.collector.errors import UsageError
from tfprof.collector.store.schema import JOB_TABLES
from tfprof.collector.store.snapshot import Snapshot


def query(snapshot: Snapshot, rollup: pa.Table, sql: str) -> pa.Table:
    """Return what ``sql`` selects from the job's tables and ``rollup``; UsageError says what is wrong with it."""
    with duckdb.connect() as connection:
        for name in JOB_TABLES:
            _offer(connection, snapshot, name)
        connection.register("rollup", rollup)
        try:
            relation = connection.sql(sql)
            result: pa.Table = pa.table({}) if relation is None else relation.to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(f"SQL: {str(error).splitlines()[0]}") from None
    return result


def _offer(connection: Any, snapshot: Snapshot, name: str) -> None:
    """Make table ``name`` of the job a view of the connection."""
    connection.register(f"tail_{name}", snapshot.unsealed(name))
    paths = [str(path) for _, path in snapshot.segments(name)]
    parts = [f"FROM tail_{name}", *([f"FROM read_parquet({_literal(paths)})"] if paths else [])]
    connection.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")


def _literal(paths: Sequence[str]) -> str:
    return "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]"
