"""The format `arrow`: one of the tables as an Arrow IPC file (Feather)."""

from collections.abc import Iterator

import pyarrow as pa

from ..export.sink import Sink
from ..tables.table import rows_of
from .request import Request


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `rows_of`."""
    rows = rows_of(request.selection, request.table, request.notes)
    sink = Sink()
    with pa.ipc.new_file(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for table in rows.tables:
            writer.write_table(table)
            yield sink.take()
    yield sink.take()
