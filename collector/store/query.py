"""SQL over a job: DuckDB in memory, never the file of record."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from tfprof.collector.errors import UsageError
from tfprof.collector.store.schema import JOB_TABLES
from tfprof.collector.store.snapshot import Snapshot


def query(snapshot: Snapshot, rollup: Callable[[], pa.Table], sql: str) -> pa.Table:
    """Return what ``sql`` selects from the job's tables and ``rollup``; UsageError says what is wrong with it.

    What the text does not speak of is not looked at: to open all tables takes longer than most questions.
    """
    with duckdb.connect() as connection:
        for name in JOB_TABLES:
            if _speaks_of(sql, name):
                _offer(connection, snapshot, name)
        if _speaks_of(sql, "rollup"):
            connection.register("rollup", rollup())
        try:
            relation = connection.sql(sql)
            result: pa.Table = pa.table({}) if relation is None else relation.to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(f"SQL: {str(error).splitlines()[0]}") from None
    return result


def _speaks_of(sql: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", sql, re.IGNORECASE) is not None


def _offer(connection: Any, snapshot: Snapshot, name: str) -> None:
    """Make table ``name`` of the job a view of the connection."""
    connection.register(f"tail_{name}", snapshot.unsealed(name))
    paths = [str(path) for _, path in snapshot.segments(name)]
    parts = [f"FROM tail_{name}", *([f"FROM read_parquet({_literal(paths)})"] if paths else [])]
    connection.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")


def _literal(paths: Sequence[str]) -> str:
    return "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]"
