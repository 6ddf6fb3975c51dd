"""The format `csv`: one of the tables as comma-separated values, with a heading."""

import json
from collections.abc import Iterator

import pyarrow as pa
from pyarrow.csv import CSVWriter, WriteOptions

from ..tables.table import rows_of
from .request import Request
from .sink import Sink


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `rows_of`."""
    rows = rows_of(request.selection, request.table)
    sink = Sink()
    schema = pa.schema([field.with_type(pa.utf8()) if pa.types.is_list(field.type) else field for field in rows.schema])
    with CSVWriter(sink, schema, write_options=WriteOptions(quoting_style="needed")) as writer:
        for table in rows.tables:
            writer.write_table(_without_lists(table, schema))
            yield sink.take()
    yield sink.take()


def _without_lists(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return ``table`` with its lists as JSON."""
    columns = [
        pa.array(map(json.dumps, column.to_pylist()), pa.utf8()) if pa.types.is_list(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, schema=schema)
