"""The curves of a job and of its host, from samples of one second, and of its steps' memory."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from ..query.job_usage import host_samples
from ..query.memory_blocks import device_of, host_devices, memory_peaks
from ..query.step_entries import row_batches
from ..store.columns import pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import ALLOCATOR, DEVICE
from ..summaries.host import cpus, host_series, job_series
from ..tfviews.nodes import interned_texts
from .executions import BATCH_ROWS
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


def memory_curves(process: int, job: JobReader, traces: pa.Table) -> Iterator[Curve]:
    """Yield the peak of each allocator in each of ``traces`` (TRACES), at the start of the step."""
    names = job.table("names")
    devices, allocators = interned_texts(names, DEVICE), interned_texts(names, ALLOCATOR)
    if not allocators:
        return
    starts_ns = dict(row_tuples(traces, "trace", "start_ns"))
    peaks: dict[str, dict[int, int]] = {}
    for numbers in row_batches(row_tuples(traces, "trace", "rows"), BATCH_ROWS):
        for trace, device, number, peak in memory_peaks(job, numbers, host_devices(devices)):
            allocator = allocators.get(number, "")
            place = " ".join(filter(None, (device_of(devices.get(device, ""), allocator), allocator)))
            peaks.setdefault(f"step.peak_bytes {place}", {})[starts_ns[trace]] = peak
    for name, by_time in sorted(peaks.items()):
        times_ns = sorted(by_time)
        yield Curve(process, name, "bytes", times_ns, [by_time[time_ns] for time_ns in times_ns])


def _unit(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "count")
