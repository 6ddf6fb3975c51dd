"""Compares the rows of the same job in two kinds of stores, and what they compute from them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tfprof.collector.store.protocols import JobReader
from tfprof.collector.store.schema import JOB_TABLES

#: Selections of traces: all, some of which there may be none, whole groups with others, none.
SELECTIONS: Final[tuple[Sequence[int] | None, ...]] = (None, [1, 3, 4, 99], [*range(8), 9], [])


def assert_same_figures(
    job: JobReader, local: JobReader, selections: Iterable[Sequence[int] | None] = SELECTIONS
) -> None:
    """Assert that the rollups and the times of ``job`` are those of ``local``."""
    for traces in selections:
        rollup = local.rollup(traces)
        assert job.rollup(traces).equals(rollup), traces
        assert job.unit_times(rollup, traces).equals(local.unit_times(rollup, traces)), traces
    some = [1, 3, 4, 99]
    order: Any = [("node", "ascending"), ("device", "ascending"), ("trace", "ascending")]
    assert job.times(some).sort_by(order).to_pylist() == local.times(some).sort_by(order).to_pylist()


def assert_same_rows(job: JobReader, local: JobReader, names: Iterable[str] = JOB_TABLES) -> None:
    """Assert that the tables ``names`` of both are equal; ops may have another order."""
    for name in names:
        tables = [one.table(name) for one in (job, local)]
        if name == "ops":
            tables = [table.sort_by([(column, "ascending") for column in table.column_names]) for table in tables]
        assert tables[0].equals(tables[1]), name
