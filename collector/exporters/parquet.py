"""The format `parquet`: one of the tables as a Parquet file."""

from collections.abc import Iterator

import pyarrow.parquet as pq

from ..tables.table import rows_of
from .request import Request
from .sink import Sink


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `rows_of`."""
    rows = rows_of(request.selection, request.table)
    sink = Sink()
    with pq.ParquetWriter(sink, rows.schema, compression="zstd") as writer:
        for table in rows.tables:
            writer.write_table(table)
            yield sink.take()
    yield sink.take()
