"""Lists of values to Arrow columns."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
from tfprof.collector.store.schema import JOB_TABLES

#: Numbers lie in an `array` of this code as in an Arrow column, and are put there in a third of the time.
_CODES: Final = {pa.uint16(): "H", pa.uint32(): "I", pa.int64(): "q", pa.uint64(): "Q", pa.float64(): "d"}
_KINDS: Final = {name: tuple((kind, _CODES.get(kind)) for kind in schema.types) for name, schema in JOB_TABLES.items()}
_EMPTY: Final = {
    name: pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)
    for name, schema in JOB_TABLES.items()
}


def from_columns(columns: Iterable[Sequence[Any]], table: str) -> pa.RecordBatch:
    """Return the rows of ``table`` that have ``columns``; ArrowInvalid or OverflowError where a value does not fit."""
    arrays = [_array(values, *kind) for values, kind in zip(columns, _KINDS[table], strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=JOB_TABLES[table])


def from_rows(rows: Sequence[tuple[Any, ...]], table: str) -> pa.RecordBatch:
    """Return ``rows`` of ``table``; errors as above."""
    return from_columns(zip(*rows, strict=True), table) if rows else _EMPTY[table]


def _array(values: Sequence[Any], kind: Any, code: str | None) -> Any:
    if code is not None:
        try:
            return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(array(code, values))])
        except TypeError:  # not numbers of this kind alone
            pass
    return pa.array(values, kind)
