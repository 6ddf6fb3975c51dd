"""Compares the rows of the same job in two kinds of stores, and what they compute from them."""

from collections.abc import Iterable

from tfprof.collector.store.protocols import JobReader
from tfprof.collector.store.schema import JOB_TABLES


def assert_same_figures(job: JobReader, local: JobReader) -> None:
    """Assert that the rollups and the times of ``job`` are those of ``local``."""
    some = [1, 3, 4, 99]
    for traces in (None, some):
        rollup = local.rollup(traces)
        assert job.rollup(traces).equals(rollup)
        assert job.unit_times(rollup, traces).equals(local.unit_times(rollup, traces))
    assert job.times(some).to_pylist() == local.times(some).to_pylist()


def assert_same_rows(job: JobReader, local: JobReader, names: Iterable[str] = JOB_TABLES) -> None:
    """Assert that the tables ``names`` of both are equal; ops may have another order."""
    for name in names:
        tables = [one.table(name) for one in (job, local)]
        if name == "ops":
            tables = [table.sort_by([(column, "ascending") for column in table.column_names]) for table in tables]
        assert tables[0].equals(tables[1]), name
