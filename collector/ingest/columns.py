"""Lists of values to Arrow columns."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa


def from_columns(columns: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch of ``columns``, one a field of ``schema``; ArrowInvalid or OverflowError where a value does not fit."""
    arrays: list[Any] = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def from_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch of ``rows``."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return from_columns(columns, schema)
