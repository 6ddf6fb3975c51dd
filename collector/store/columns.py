"""Arithmetic on whole columns that pyarrow lacks."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

#: pyarrow's functions without types. Their type stubs reject plain numbers, and have no result type
#: for an argument of type Any.
pc: Final[Any] = pyarrow.compute
#: Number of rows that `row_tuples` converts at a time.
_CONVERTED_ROWS: Final = 16_384


@cache
def constant(value: float, kind: Any) -> Any:
    """Return ``value`` as a cached scalar, since pyarrow needs 0.1 ms to convert a number."""
    return pa.scalar(value, kind)


def integer(value: int) -> Any:
    """Return ``value`` as an int64 scalar."""
    return constant(value, pa.int64())


def column_list(table: Any, name: str) -> list[Any]:
    """Return a column of ``table`` as a list."""
    values: list[Any] = table[name].to_pylist()
    return values


def row_tuples(table: Any, *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the columns ``names``, or of all columns, as tuples.

    A limited number of rows is converted at a time, since Python objects take many times the bytes.
    """
    columns = [table[name] for name in names or table.column_names]
    for start in range(0, table.num_rows, _CONVERTED_ROWS):
        parts: list[list[Any]] = [column.slice(start, _CONVERTED_ROWS).to_pylist() for column in columns]
        yield from zip(*parts, strict=True)


def integers(column: Any) -> list[int]:
    """Return an integer column without nulls as a list; to_pylist takes ten times as long."""
    values = flat(column).cast(pa.int64())
    data = values.buffers()[1]
    numbers = memoryview(b"" if data is None else data).cast("q")
    return numbers[values.offset : values.offset + len(values)].tolist()


def as_table(rows: pa.RecordBatch | pa.Table) -> pa.Table:
    """Return ``rows`` as a table."""
    return rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])


def typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return ``table`` with names and types of ``schema``; without rows it may lack the columns."""
    return table.rename_columns(schema.names).cast(schema) if table.num_rows else schema.empty_table()


def flat(column: Any) -> Any:
    """Return ``column`` as one chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def flat_table(table: pa.Table) -> pa.Table:
    """Return ``table`` with one chunk per column.

    Columns are copied one at a time to save memory.
    """
    schema, columns = table.schema, table.columns
    del table
    for number in range(len(columns)):
        columns[number] = flat(columns[number])
    return pa.table(columns, schema=schema)


def row_numbers(size: int) -> Any:
    """Return 0, 1, … ``size`` - 1."""
    return pc.subtract(pc.cumulative_sum(repeat(1, size, pa.int64())), integer(1))


def flagged(rows: pa.Table, flags: int) -> Any:
    """Return for each of ``rows``, of spans, whether it has any of ``flags``."""
    bits = pc.bit_wise_and(rows["flags"], constant(flags, pa.uint16()))
    return pc.not_equal(bits, constant(0, pa.uint16()))


def repeat(value: int, size: int, kind: Any) -> Any:
    """Return a column of ``size`` times ``value``."""
    return pa.repeat(constant(value, kind), size)


def changes(column: Any) -> Any:
    """Return for each element whether it differs from the one before; true for the first one."""
    first = pa.repeat(_TRUE, min(1, len(column)))
    return pa.concat_arrays([first, pc.not_equal(column.slice(1), column.slice(0, max(0, len(column) - 1)))])


def scatter(indexes: Any, values: Any, size: int, default: int) -> Any:
    """Return ``size`` elements: ``values`` at the distinct ``indexes``, ``default`` elsewhere."""
    return pc.fill_null(values.take(pc.index_in(row_numbers(size).cast(indexes.type), value_set=indexes)), default)


def occurrences(column: Any) -> list[tuple[Any, int]]:
    """Return (value, number of times) of each distinct value, in order of first occurrence.

    Table.group_by would load further modules of pyarrow, which takes longer than most queries.
    """
    rows: list[Any] = pc.value_counts(column).to_pylist()
    return [(row["values"], row["counts"]) for row in rows]


def tally(index: Any, size: int) -> Any:
    """Return how often each of 0 … ``size`` - 1 occurs in ``index``."""
    counts = pc.value_counts(index)
    return scatter(counts.field("values"), counts.field("counts"), size, 0)


def floor_divide(column: Any, divisor: int) -> Any:
    """Return the floor of ``column`` / ``divisor``; pyarrow's division rounds towards zero."""
    quotient = pc.divide(column, integer(divisor))
    if not len(column) or pc.min(column).as_py() >= 0:
        return quotient
    return pc.subtract(quotient, pc.greater(pc.multiply(quotient, integer(divisor)), column).cast(column.type))


def run_sums(column: Any, run_starts: Any) -> Any:
    """Return the sum of each run of elements.

    Runs begin at the indexes ``run_starts``, the first at 0. Sums wrap around.
    Table.group_by would load further modules of pyarrow.
    """
    if not len(run_starts):
        return column.slice(0, 0)
    end = pa.array([len(column)], run_starts.type)
    last_indexes = pc.subtract(pa.concat_arrays([run_starts.slice(1), end]), constant(1, run_starts.type))
    sums_to_end = pc.cumulative_sum(column).take(last_indexes)
    sums_before = pa.concat_arrays([repeat(0, 1, column.type), sums_to_end.slice(0, len(sums_to_end) - 1)])
    return pc.subtract(sums_to_end, sums_before)


_TRUE = pa.scalar(True)
