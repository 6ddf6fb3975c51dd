"""Reads the environment of a job.

It consists of samples of the job's host, the use of the CPUs, and the job's memory while steps ran.
"""

from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from ..advice.evidence import Load, MemorySample
from ..store.columns import flat, pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import HOST_SAMPLES
from ..summaries.host import cpus, host_series, job_series, samples_between

#: Number of warm-up steps, which allocate memory once.
_WARM_UP_STEPS: Final = 10


def host_samples(job: JobReader, samples: pa.Table) -> pa.Table:
    """Return the samples of the job's host during ``samples``; an empty table if there are none."""
    rows = job.host_samples() if samples.num_rows else HOST_SAMPLES.empty_table()
    if not rows.num_rows:
        return rows
    times: list[Any] = samples["t_ns"].to_pylist()
    return samples_between(rows, min(times), max(times))


def steady_period(spans: pa.Table) -> tuple[int, int] | None:
    """Return the ends of the warm-up and of the last step in real ns.

    None if there are only warm-up steps.
    """
    kinds = set(layout.STEP_KINDS)
    rows = row_tuples(spans, "start_ns", "total_ns", "count", "kind")
    steps = sorted((start + total, count) for start, total, count, kind in rows if kind in kinds)
    step_count = 0
    for end, count in steps:
        step_count += count
        if step_count >= _WARM_UP_STEPS:
            return (end, steps[-1][0]) if end < steps[-1][0] else None
    return None


def memory_levels(samples: pa.Table, period: tuple[int, int]) -> tuple[MemorySample, ...]:
    """Return the memory of the processes at each sample within ``period``.

    Samples after the end of the processes are left out.
    """
    rows = row_tuples(samples, "t_ns", "rss_bytes")
    first, last = period
    return tuple(sorted(MemorySample(t_ns, rss) for t_ns, rss in rows if rss and first <= t_ns <= last))


def cpu_loads(samples: pa.Table, host_rows: pa.Table) -> tuple[Load, ...]:
    """Return the use of the CPUs between neighboring samples of a job.

    ``host_rows``: the samples of the job's host. A sample in only one of the tables is ignored.
    """
    cores = cpus(host_rows)
    common_times: set[Any] = set(samples["t_ns"].to_pylist()) & set(host_rows["t_ns"].to_pylist())
    if not cores or len(common_times) < 2:
        return ()
    times_ns = sorted(common_times)
    job_cores, host_cores = (
        job_series(_rows_at(samples, times_ns), cores)[0].values,
        host_series(_rows_at(host_rows, times_ns))[0].values,
    )
    return tuple(
        Load(start, end, job_load, max(0.0, host_load - job_load), cores)
        for (start, end), job_load, host_load in zip(pairwise(times_ns), job_cores, host_cores, strict=True)
    )


def _rows_at(table: pa.Table, times_ns: list[int]) -> pa.Table:
    """Return the first row at each of ``times_ns``."""
    return table.take(pc.index_in(pa.array(times_ns, pa.int64()), value_set=flat(table["t_ns"])))
