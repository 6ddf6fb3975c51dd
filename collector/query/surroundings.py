"""What ran beside a job: samples of its host, who used the CPUs, and how its memory went while steps ran."""

from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from ..advice.evidence import Level, Load
from ..store import catalog
from ..store.columns import flat, pc
from ..store.reader import Job
from ..store.schema import HOST_SAMPLES
from ..summaries.host import between, cpus, host_series, job_series

#: Steps that warm up: what they make is made once.
_FIRST: Final = 10


def host_samples(job: Job, samples: pa.Table) -> pa.Table:
    """Return the samples of the job's host while ``samples`` of the job were taken; none where there are none."""
    host = str(job.info.identity.get("host") or "")
    folder = catalog.host_folder(job.folder.parents[1], host)
    if not samples.num_rows or not host or not folder.is_dir():
        return HOST_SAMPLES.empty_table()
    times: list[Any] = samples["t_ns"].to_pylist()
    try:
        found = Job(folder, catalog.load(folder)).table("host_samples")
    except FileNotFoundError:  # it was removed just now
        return HOST_SAMPLES.empty_table()
    return between(found, min(times), max(times))


def steady(spans: pa.Table) -> tuple[int, int] | None:
    """Return when the first steps had ended and the last one ended, in real ns; None where there are no more than the first."""
    kinds = set(layout.STEP_KINDS)
    columns: Any = (spans[name].to_pylist() for name in ("start_ns", "total_ns", "count", "kind"))
    steps = sorted((start + total, count) for start, total, count, kind in zip(*columns, strict=True) if kind in kinds)
    number = 0
    for end, count in steps:
        number += count
        if number >= _FIRST:
            return (end, steps[-1][0]) if end < steps[-1][0] else None
    return None


def levels(samples: pa.Table, during: tuple[int, int]) -> tuple[Level, ...]:
    """Return how much memory the processes had at each sample of a time; one that was taken when they were gone is none."""
    columns: Any = (samples[name].to_pylist() for name in ("t_ns", "rss_bytes"))
    first, last = during
    return tuple(sorted(Level(t_ns, rss) for t_ns, rss in zip(*columns, strict=True) if rss and first <= t_ns <= last))


def load(samples: pa.Table, around: pa.Table) -> tuple[Load, ...]:
    """Return who used the CPUs between any two neighbours of a job's samples, which those of its host, ``around``, go with."""
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
    """Return the first row of each of ``moments``."""
    return table.take(pc.index_in(pa.array(moments, pa.int64()), value_set=flat(table["t_ns"])))
