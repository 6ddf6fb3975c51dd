"""SQL over a job: an in-memory DuckDB that reads the job's files."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ..errors import StoreError
from . import store_files
from .schema import JOB_TABLES
from .snapshot import Snapshot

#: Settings of the database. Its cache is off, since it would outlive a session.
_settings: dict[str, str | bool | int | float | list[str]] = {"enable_external_file_cache": False}


def confine() -> None:
    """Let queries of this process use one thread, and keep little memory after they end."""
    _settings.update(threads=1, allocator_flush_threshold="1MB")


@contextmanager
def sql_session(snapshot: Snapshot) -> Iterator[Callable[[str], pa.Table]]:
    """Provide a function that answers SQL queries about the job's tables.

    It raises StoreError if a file is damaged. A table is opened when a query names it: opening all
    of them takes longer than most queries.
    """
    with _database().cursor() as connection:
        open_tables: set[str] = set()

        def query(sql: str) -> pa.Table:
            try:
                for name in JOB_TABLES.keys() - open_tables:
                    if re.search(rf"\b{name}\b", sql, re.IGNORECASE):
                        open_tables.add(name)
                        open_table(connection, snapshot, name)
                result: pa.Table = connection.sql(sql).to_arrow_table()
            except duckdb.Error as error:
                _database.cache_clear()  # an internal error makes a database unusable
                _check_files(snapshot, open_tables)
                message = f"{snapshot.folder} is damaged: {str(error).splitlines()[0]}"
                raise StoreError(message, "store-damaged") from None
            return result

        yield query


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Return the database of this process.

    There is one database, since making one takes longer than most queries. It stores nothing
    itself: each session has its own connection with its own temporary views.
    """
    return duckdb.connect(config=_settings)


def _check_files(snapshot: Snapshot, tables: Iterable[str]) -> None:
    """Raise FileNotFoundError if the collector has merged and removed a file of ``tables``.

    `with_stable_snapshot` then tries again.
    """
    for name in tables:
        for _, path in snapshot.segments(name):
            path.lstat()


def open_table(connection: Any, snapshot: Snapshot, name: str) -> None:
    """Define table ``name`` of the job as a temporary view of the connection."""
    connection.register(f"tail_{name}", snapshot.unsealed(name))
    paths = [path for _, path in snapshot.segments(name)]
    for path in paths:
        store_files.check(path, store_files.SEGMENT)
    parts = [f"FROM tail_{name}"]
    if paths:  # segments of older releases may have more columns
        columns = ", ".join(f'"{column}"' for column in JOB_TABLES[name].names)
        parts.append(f"FROM read_parquet({_literal(paths)}) SELECT {columns}")
    connection.execute(f"CREATE TEMP VIEW {name} AS {' UNION ALL '.join(parts)}")


def _literal(paths: Sequence[Path]) -> str:
    return "[" + ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths) + "]"
