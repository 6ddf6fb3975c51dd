"""Converts lists of values to Arrow columns."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from ..store.schema import JOB_TABLES

INT64_MAX: Final = (1 << 63) - 1
#: Python type, and `array` code with the same memory layout, by Arrow type. Converting through
#: `array` takes a third of the time.
_CODES: Final = {
    pa.uint16(): (int, "H"),
    pa.uint32(): (int, "I"),
    pa.int64(): (int, "q"),
    pa.uint64(): (int, "Q"),
    pa.float64(): (float, "d"),
}
_COLUMN_TYPES: Final = {
    name: tuple((arrow_type, _CODES.get(arrow_type)) for arrow_type in schema.types)
    for name, schema in JOB_TABLES.items()
}
_EMPTY: Final = {name: pa.RecordBatch.from_pylist([], schema=schema) for name, schema in JOB_TABLES.items()}


def saturated(value: int) -> int:
    """Return ``value`` saturated to a signed 64-bit integer; a job may report any number."""
    return max(-INT64_MAX, min(INT64_MAX, value))


def from_columns(columns: Iterable[Sequence[Any]], table: str) -> pa.RecordBatch:
    """Return rows of ``table`` from its columns.

    ArrowInvalid or OverflowError if a value does not fit its column.
    """
    arrays = [_array(values, *column_type) for values, column_type in zip(columns, _COLUMN_TYPES[table], strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=JOB_TABLES[table])


def from_rows(rows: Sequence[tuple[Any, ...]], table: str) -> pa.RecordBatch:
    """Return rows of ``table`` from tuples; errors as in ``from_columns``."""
    return from_columns(zip(*rows, strict=True), table) if rows else _EMPTY[table]


def _array(values: Sequence[Any], arrow_type: Any, code: tuple[type, str] | None) -> Any:
    if code is None or set(map(type, values)) != {code[0]}:  # pyarrow converts or refuses other types
        return pa.array(values, arrow_type)
    return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(array(code[1], values))])
