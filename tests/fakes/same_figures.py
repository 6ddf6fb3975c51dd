"""Compares what two kinds of stores compute from the rows of the same job."""

from tfprof.collector.store.protocols import JobReader


def assert_same_figures(job: JobReader, local: JobReader) -> None:
    """Assert that the rollups and the times of ``job`` are those of ``local``."""
    some = [1, 3, 4, 99]
    for traces in (None, some):
        rollup = local.rollup(traces)
        assert job.rollup(traces).equals(rollup)
        assert job.unit_times(rollup, traces).equals(local.unit_times(rollup, traces))
    assert job.times(some).to_pylist() == local.times(some).to_pylist()
