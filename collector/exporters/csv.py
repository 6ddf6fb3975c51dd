"""The format `csv`: one of the tables as comma-separated values, with a heading."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyarrow.csv import CSVWriter, WriteOptions

from ..export.sink import Sink
from ..store.columns import flat, pc
from ..tables.table import rows_of
from .request import Request

#: A spreadsheet takes a text with this beginning for a formula, and runs it.
_FORMULA: Final = r"^[=+\-@\t\r]"


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `rows_of`."""
    rows = rows_of(request.selection, request.table, request.notes)
    sink = Sink()
    schema = pa.schema([field.with_type(pa.utf8()) if pa.types.is_list(field.type) else field for field in rows.schema])
    with CSVWriter(sink, schema, write_options=WriteOptions(quoting_style="needed")) as writer:
        for table in rows.tables:
            writer.write_table(pa.table(list(map(_cells, table.columns)), schema=schema))
            yield sink.take()
    yield sink.take()


def _cells(column: Any) -> Any:
    """Return a column as CSV has it: lists are JSON, and formulas begin with `'`."""
    if pa.types.is_list(column.type):
        return pa.array(map(json.dumps, column.to_pylist()), pa.utf8())
    if not pa.types.is_string(column.type):
        return column
    texts = flat(column).dictionary_encode()
    is_formula = pc.match_substring_regex(texts.dictionary, _FORMULA)
    if not pc.any(is_formula).as_py():
        return column
    quoted = pc.binary_join_element_wise("'", texts.dictionary, "")
    return pc.if_else(is_formula, quoted, texts.dictionary).take(texts.indices)
