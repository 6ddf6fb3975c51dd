"""The curves of a job and of its host, from their samples of one second."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from ..query.surroundings import host_samples
from ..store.columns import pc
from ..store.protocols import JobReader
from ..summaries.host import cpus, host_series, job_series
from .model import Curve

#: Ends of the names of series -> units of their values.
_UNITS: Final = {"_bytes": "bytes", "_bytes_per_s": "bytes/s", "_cores": "cores"}


def curves(process: int, job: JobReader, samples: pa.Table) -> Iterator[Curve]:
    """Yield the curves during ``samples`` (SAMPLES of ``job``) for the process with this number.

    The time of a rate is the end of its interval.
    """
    host = host_samples(job, samples).rows
    first_ns: int = pc.min(samples["t_ns"]).as_py() or 0
    for subject, all_series in (
        ("job", job_series(samples, cpus(host)) if samples.num_rows else []),
        ("host", host_series(host) if host.num_rows else []),
    ):
        for series in all_series:
            skipped = bisect_left(series.times_ns, first_ns)  # the host has a sample before those of the job
            times_ns, values = series.times_ns[skipped:], series.values[skipped:]
            if values:
                yield Curve(process, f"{subject}.{series.name}", _unit(series.name), times_ns, values)


def _unit(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "count")
