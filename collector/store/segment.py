"""A sealed table: one Parquet file."""

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import StoreError
from . import store_files
from .durable import unreadable_error
from .schema import JOB_TABLES, LAST_TRACE, ROLLUP, STEP_TIMES

ROLLUP_NAME: Final = "rollup"
TIMES_NAME: Final = "times"
#: The totals: aggregates of all sealed generations.
TOTAL_NAME: Final = "total"
TOTAL_TIMES_NAME: Final = "total_times"
TOTALS: Final = (TOTAL_NAME, TOTAL_TIMES_NAME)
SCHEMAS: Final = {
    **JOB_TABLES,
    ROLLUP_NAME: ROLLUP,
    TOTAL_NAME: ROLLUP,
    TIMES_NAME: STEP_TIMES,
    TOTAL_TIMES_NAME: STEP_TIMES,
}

#: Maximum number of rows of a segment. A few bytes of a damaged or forged file can claim more. The
#: largest append has a few million rows.
ROWS_MAX: Final = 1 << 24

ROW_GROUP_ROWS = 100_000
#: Columns with statistics, which readers use to select row groups. Start times of ops are relative
#: to their trace, so statistics on them would be useless.
_STATISTICS: Final = ["trace", "node", "t_ns"]
#: A column of recurring integers. A dictionary takes half the space of encoded differences.
_REPEATED: Final = "address"
_NAME = re.compile(r"([a-z_]+)-(\d{6,})\.parquet")


def file_name(table: str, generation: int) -> str:
    """Return the name of the file of ``table`` in ``generation``."""
    return f"{table}-{generation:06d}.parquet"


def parse_name(name: str) -> tuple[str, int] | None:
    """Return table and generation of a file called ``name``, None if it is not a segment."""
    match = _NAME.fullmatch(name)
    return (match[1], int(match[2])) if match and match[1] in SCHEMAS else None


def encode(name: str, table: pa.Table, metadata: Mapping[str, int] | None = None) -> memoryview:
    """Return the bytes of the segment of table ``name``, with ``metadata``."""
    return encode_parts(name, [table], metadata)


def encode_parts(name: str, parts: Iterable[pa.Table], metadata: Mapping[str, int] | None = None) -> memoryview:
    """Return the bytes of the segment of table ``name``, with ``metadata``.

    Each of ``parts`` begins a new row group.
    """
    schema = _required(SCHEMAS[name])
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, **_settings(schema)) as writer:
        for part in parts:
            writer.write_table(part.cast(schema), row_group_size=ROW_GROUP_ROWS)
            del part  # frees it before the next one is created
        writer.add_key_value_metadata({key: str(value) for key, value in (metadata or {}).items()})
    return memoryview(sink.getvalue())


def read(path: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the segment of table ``name`` at ``path``, or only ``columns`` of it.

    FileNotFoundError if there is none, StoreError if it is damaged.
    """
    schema = SCHEMAS[name]
    names = list(schema.names if columns is None else columns)
    with _opened(path) as file:
        table = file.read(columns=names, use_threads=False).select(names)
        table.validate(full=True)  # a text may not be UTF-8
    expected = pa.schema([schema.field(column) for column in names])
    if not table.schema.equals(_required(expected)):
        raise StoreError(f"{path} is damaged: its columns are not those of {name}", "store-damaged")
    return _with_schema(table, expected)


def row_count(path: Path) -> int:
    """Return the number of rows of the segment at ``path``; errors are those of ``read``."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def groups(path: Path, name: str, traces: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield ``columns`` of the row groups that may have any of the ascending ``traces``.

    Row groups that may share a trace are in one table, so no trace is in two tables. Rows keep the
    order of the segment. Errors are those of ``read``.
    """
    schema = pa.schema([SCHEMAS[name].field(column) for column in columns])
    with _opened(path) as file:
        for numbers in _group_lists(file.metadata, SCHEMAS[name].names.index("trace"), traces):
            table = file.read_row_groups(numbers, columns=list(columns), use_threads=False).select(list(columns))
            yield _with_schema(table, schema)


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """Provide the file at ``path``; an error of reading it becomes a StoreError.

    FileNotFoundError if there is none.
    """
    descriptor = store_files.open_file(path, store_files.SEGMENT)
    try:
        # Reading ahead doubles the time of a small file.
        with pq.ParquetFile(f"/proc/self/fd/{descriptor}", pre_buffer=False) as file:
            if file.metadata.num_rows > ROWS_MAX:
                raise StoreError(f"{path} is damaged: it has {file.metadata.num_rows} rows", "store-damaged")
            yield file
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:  # a column's name may not be UTF-8
        raise unreadable_error(path, error) from None
    finally:
        os.close(descriptor)


def _group_lists(file_metadata: pq.FileMetaData, column: int, traces: Sequence[int]) -> list[list[int]]:
    """Return lists of the row groups that may have any of ``traces``.

    Row groups that may share a trace are in one list.
    """
    group_lists: list[list[int]] = []
    highest_trace = -1
    for group in range(file_metadata.num_row_groups):
        first, last = _trace_range(file_metadata, group, column)
        if bisect_left(traces, first) == bisect_right(traces, last):
            continue
        if first > highest_trace:
            group_lists.append([])
        group_lists[-1].append(group)
        highest_trace = max(highest_trace, last)
    return group_lists


def _with_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return ``table`` with the nullable columns of ``schema``; a cast would read every list."""
    return pa.Table.from_arrays(table.columns, schema=schema)


def _trace_range(file_metadata: pq.FileMetaData, group: int, column: int) -> tuple[int, int]:
    """Return the lowest and the highest trace that a row group may have."""
    statistics: Any = file_metadata.row_group(group).column(column).statistics
    return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else (0, LAST_TRACE)


def metadata(path: Path) -> dict[str, int]:
    """Return the ``metadata`` of a segment (see ``encode``).

    FileNotFoundError if there is none, StoreError if it is damaged.
    """
    with _opened(path) as file:
        pairs = file.metadata.metadata or {}
    try:
        return {key.decode(): int(value) for key, value in pairs.items()}
    except ValueError as error:
        raise unreadable_error(path, error) from None


def _required(schema: pa.Schema) -> pa.Schema:
    """Return ``schema`` with required columns, for which Parquet stores no null flags."""
    return pa.schema([field.with_nullable(False) for field in schema])


def _settings(schema: pa.Schema) -> dict[str, Any]:
    integers = {field.name for field in schema if pa.types.is_integer(field.type) and field.name != _REPEATED}
    return {
        "compression": "zstd",
        "compression_level": 1,
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        "use_dictionary": [
            _leaf(field) for field in schema if field.name not in integers and field.type != pa.float64()
        ],
        "write_statistics": [name for name in _STATISTICS if name in integers],
        "store_schema": False,  # the Parquet types suffice; the schema would be most of a small segment
    }


def _leaf(field: Any) -> str:
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else str(field.name)
