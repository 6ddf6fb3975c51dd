"""The format `parquet`: one of the tables as a Parquet file."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..export.sink import Sink
from ..tables.table import rows_of
from .request import Request


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `rows_of`."""
    rows = rows_of(request.selection, request.table, request.notes)
    sink = Sink()
    # Times hardly recur. With a dictionary, the file would be 50 % larger, and writing would take
    # longer.
    recurring: Any = [_path(field) for field in rows.schema if not field.name.endswith("_ns")]
    with pq.ParquetWriter(sink, rows.schema, compression="zstd", use_dictionary=recurring) as writer:
        for table in rows.tables:
            writer.write_table(table)
            yield sink.take()
    yield sink.take()


def _path(field: Any) -> str:
    """Return the path of a column in Parquet."""
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else str(field.name)
