"""Makes tables of a schema from columns or from rows; invalid UTF-8 in texts is replaced."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..store.protocols import JobReader
from ..tfviews.encoding import valid_utf8
from .columns import JOB, TEXT


def texts(values: Iterable[str]) -> Any:
    """Return ``values`` as a column."""
    return pa.array([valid_utf8(value) for value in values], TEXT)


def table_of_columns(job: JobReader, columns: Mapping[str, Any], size: int, schema: pa.Schema) -> pa.Table:
    """Return the ``columns`` that ``schema`` has; those of JOB have the same value in all rows."""
    names = (name for name, _ in JOB)
    values: Iterable[tuple[str, Any]] = zip(names, _job_values(job), strict=True)
    all_columns = {**columns, **{name: pa.repeat(value, size) for name, value in values}}
    return pa.table([all_columns[field.name].cast(field.type) for field in schema], schema=schema)


def table_of_job(job: JobReader, rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return ``rows`` with the columns of JOB in front."""
    values = _job_values(job)
    return table_of_rows([(*values, *row) for row in rows], schema)


def table_of_rows(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return ``rows`` as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table(
        [
            texts(values) if field.type == TEXT else pa.array(values, field.type)
            for field, values in zip(schema, columns, strict=True)
        ],
        schema=schema,
    )


def _job_values(job: JobReader) -> tuple[str, str, str, int]:
    return job.info.hex, valid_utf8(job.info.name), valid_utf8(job.info.host), job.info.pid
