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
from ..summaries.host import between, cpus, host_series, job_series

#: Number of warm-up steps, which allocate memory once.
_FIRST: Final = 10


def host_samples(job: JobReader, samples: pa.Table) -> pa.Table:
    """Return the samples of the job's host during ``samples``; an empty table if there are none."""
    found = job.host_samples() if samples.num_rows else HOST_SAMPLES.empty_table()
    if not found.num_rows:
        return found
    times: list[Any] = samples["t_ns"].to_pylist()
    return between(found, min(times), max(times))


def steady(spans: pa.Table) -> tuple[int, int] | None:
    """Return the ends of the warm-up and of the last step in real ns.

    None if there are only warm-up steps.
    """
    kinds = set(layout.STEP_KINDS)
    rows = row_tuples(spans, "start_ns", "total_ns", "count", "kind")
    steps = sorted((start + total, count) for start, total, count, kind in rows if kind in kinds)
    number = 0
    for end, count in steps:
        number += count
        if number >= _FIRST:
            return (end, steps[-1][0]) if end < steps[-1][0] else None
    return None


def levels(samples: pa.Table, during: tuple[int, int]) -> tuple[MemorySample, ...]:
    """Return the memory of the processes at each sample within ``during``.

    Samples after the end of the processes are left out.
    """
    rows = row_tuples(samples, "t_ns", "rss_bytes")
    first, last = during
    return tuple(sorted(MemorySample(t_ns, rss) for t_ns, rss in rows if rss and first <= t_ns <= last))


def load(samples: pa.Table, around: pa.Table) -> tuple[Load, ...]:
    """Return the use of the CPUs between neighboring samples of a job.

    ``around``: the samples of its host. A sample that only one of the tables has is ignored.
    """
    cores = cpus(around)
    times: set[Any] = set(samples["t_ns"].to_pylist()) & set(around["t_ns"].to_pylist())
    if not cores or len(times) < 2:
        return ()
    moments = sorted(times)
    own, busy = job_series(_at(samples, moments), cores)[0].values, host_series(_at(around, moments))[0].values
    return tuple(
        Load(start, end, mine, max(0.0, every - mine), cores)
        for (start, end), mine, every in zip(pairwise(moments), own, busy, strict=True)
    )


def _at(table: pa.Table, moments: list[int]) -> pa.Table:
    """Return the first row at each of ``moments``."""
    return table.take(pc.index_in(pa.array(moments, pa.int64()), value_set=flat(table["t_ns"])))
