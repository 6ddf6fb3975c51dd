"""Columns equal those of pyarrow, and values that pyarrow refuses are refused.

Tests collector/store/schema.py.
"""

import pyarrow as pa
import pytest
from tfprof.collector.decoders.columns import from_rows
from tfprof.collector.store.schema import JOB_TABLES

SCHEMA = JOB_TABLES["samples"]
VALUES = [0, 7, -1, 1 << 40, 1 << 60, 1 << 70, 1.0, 2.5, float("inf"), True, None, "7", b"7"]


def _outcome(make):
    try:
        return make()
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return "refused"


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", SCHEMA.names)
def test_values_are_converted_as_by_pyarrow(name, value):
    row = tuple(value if name == other else 0 for other in SCHEMA.names)
    expected = _outcome(lambda: pa.array([value], SCHEMA.field(name).type))
    assert _outcome(lambda: from_rows([row], "samples").column(name)) == expected


@pytest.mark.parametrize("table", JOB_TABLES)
def test_no_rows_are_an_empty_batch(table):
    batch = from_rows([], table)
    assert (batch.num_rows, batch.schema) == (0, JOB_TABLES[table])
