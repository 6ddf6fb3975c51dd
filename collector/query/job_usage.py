"""Reads the resource use of a job and of its host, and the environment of the job."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import activities, span_kinds
from ...formats.ids import ALL_THREADS
from ..advice.evidence import Load, MemorySample, PythonThread, Use
from ..errors import StoreError
from ..store.columns import flat, pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import HOST_SAMPLES
from ..summaries.activity_parts import FUNCTION_AND_LINE
from ..summaries.host import Series, cpus, host_series, job_series, samples_between
from ..summaries.jobs import functions_of
from ..summaries.step_records import ThreadUse

#: Number of warm-up steps, which allocate memory once.
_WARM_UP_STEPS: Final = 10
#: Minimum number of samples for a mean use of resources. There is one sample a second.
_USE_SAMPLES: Final = 3
_THREAD_SAMPLES: Final = 2
_FAR_BUSIER: Final = 3.0
#: Minimum share of a period in which the time of the job's own process is known.
_COVERED_MIN: Final = 0.7
#: `4711 count (train.py:12) Thread-1`: the name of a thread, as the shim announces it.
_THREAD: Final = re.compile(rf"(?P<number>\d+) {FUNCTION_AND_LINE} (?P<name>.*)", re.DOTALL)


class HostSamples(NamedTuple):
    """Samples of a job's host; ``damage``: why they cannot be read, empty if they can."""

    rows: pa.Table
    damage: str = ""


def host_samples(job: JobReader, samples: pa.Table) -> HostSamples:
    """Return the samples of the job's host during ``samples``; no rows if there are none.

    A damaged file of the host, which all its jobs share, is no error of the job.
    """
    try:
        rows = job.host_samples() if samples.num_rows else HOST_SAMPLES.empty_table()
    except StoreError as error:
        return HostSamples(HOST_SAMPLES.empty_table(), str(error))
    if not rows.num_rows:
        return HostSamples(rows)
    times: list[Any] = samples["t_ns"].to_pylist()
    return HostSamples(samples_between(rows, min(times), max(times)))


def steady_period(spans: pa.Table) -> tuple[int, int] | None:
    """Return the ends of the warm-up and of the last step in real ns.

    None if there are only warm-up steps.
    """
    kinds = set(span_kinds.steps())
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


def use_between(samples: pa.Table, period: tuple[int, int]) -> Use | None:
    """Return the mean use of resources within ``period``, None if there are too few samples."""
    rows = sorted(
        row
        for row in row_tuples(samples, "t_ns", "cpu_user_s", "cpu_system_s", "write_bytes", "rss_bytes")
        if row[-1] and period[0] <= row[0] <= period[1]
    )
    if len(rows) < _USE_SAMPLES:
        return None
    (first_ns, *first, _), (last_ns, *last, _) = rows[0], rows[-1]
    user_s, system_s, written = (after - before for before, after in zip(first, last, strict=True))
    seconds = (last_ns - first_ns) / 1e9
    return Use(max(0.0, user_s + system_s) / seconds, max(0, written) / seconds)


def thread_use(job: JobReader, thread: int, period: tuple[int, int]) -> ThreadUse | None:
    """Return what ``thread`` did within ``period``, None if there are too few samples.

    The times of a thread are unknown if it is not the main thread of the job's process, or if the
    kernel does not tell them. The CPU time of the whole process is then an upper limit of what the
    thread used.
    """
    rows = [row for row in sorted(row_tuples(job.table("thread_samples"))) if period[0] <= row[0] <= period[1]]
    if thread == job.info.pid and len(rows) >= _THREAD_SAMPLES:
        times, *totals = zip(*rows, strict=True)
        seconds = (times[-1] - times[0]) / 1e9
        cpu, queued, queued_all = map(_increase, totals)
        if seconds <= 0:
            return None
        process = _process_cores(job, (times[0], times[-1]))
        return ThreadUse(cpu / seconds, queued / seconds, queued_all / seconds, process=process)
    use = use_between(job.table("samples"), period)
    return None if use is None else ThreadUse(min(1.0, use.cores), is_exact=False)


def _process_cores(job: JobReader, period: tuple[int, int]) -> float | None:
    """Return the CPUs that the job's own process used within ``period``, None if unknown."""
    rows = [
        (t_ns, cpu_s)
        for t_ns, thread, cpu_s in sorted(row_tuples(job.table("busy_threads")))
        if thread == ALL_THREADS and period[0] <= t_ns <= period[1]
    ]
    covered_ns = rows[-1][0] - rows[0][0] if rows else 0
    if covered_ns < _COVERED_MIN * (period[1] - period[0]):
        return None
    used_s: float = sum(cpu_s for _, cpu_s in rows[1:])
    return used_s / (covered_ns / 1e9)


def python_threads(job: JobReader, period: tuple[int, int]) -> tuple[PythonThread, ...]:
    """Return the threads of the job's Python that used a CPU within ``period``, the busiest first.

    Before Python 3.8 the kernel's number of a thread is unknown. If the job's Python has a single
    further thread, and one thread is far busier than all others, the two are assumed to be the
    same.
    """
    times: Counter[int] = Counter()
    for t_ns, thread, cpu_s in row_tuples(job.table("busy_threads")):
        if thread != ALL_THREADS and period[0] < t_ns <= period[1]:
            times[thread] += cpu_s
    seconds = (period[1] - period[0]) / 1e9
    names = [
        match
        for key, name in functions_of(job.info).items()
        if activities.number_of(key) == activities.THREAD and (match := _THREAD.fullmatch(name))
    ]
    by_number = {int(match["number"]): match for match in names}
    (busiest, busiest_s), (_, second_s), *_ = [*times.most_common(2), (0, 0.0), (0, 0.0)]
    if set(by_number) == {0} and len(names) == 1 and busiest_s > _FAR_BUSIER * second_s:
        by_number = {busiest: names[0]}
    return tuple(
        PythonThread(match["name"], match["function"], match["line"], min(1.0, cpu_s / seconds))
        for thread, cpu_s in times.most_common()
        if (match := by_number.get(thread))
    )


def _increase(totals: Sequence[float]) -> float:
    """Return the growth of ``totals``.

    A sum over threads falls when a thread ends, which counts as 0.
    """
    return sum(max(0.0, after - before) for before, after in pairwise(totals))


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


@dataclass(frozen=True, slots=True)
class JobUsage:
    """The resource use of a job and of its host.

    ``cpus``: number of CPUs of the host, None if unknown. ``samples``: number of the job's samples.
    ``host_series`` is empty without samples of the host. ``last_ns``: real time of the job's last
    sample, 0 without any. ``damage``: why samples of the host cannot be read, empty if they can.
    """

    job: JobReader
    host: str
    cpus: int | None
    samples: int
    job_series: tuple[Series, ...]
    host_series: tuple[Series, ...]
    damage: str
    since_ns: int
    last_ns: int


def job_usage(job: JobReader, since_ns: int = 0) -> JobUsage:
    """Return the resource use of ``job`` and of its host; one snapshot of the job is read.

    ``since_ns``: only from then on (real time), 0 for the whole job.
    """
    return job.on_one_snapshot(lambda snapshot: _job_usage(snapshot, since_ns))


def _job_usage(job: JobReader, since_ns: int) -> JobUsage:
    all_samples = job.table("samples")
    last_ns = pc.max(all_samples["t_ns"]).as_py() or 0
    samples = samples_between(all_samples, since_ns, last_ns) if since_ns <= last_ns else all_samples.slice(0, 0)
    host_rows, damage = host_samples(job, samples)
    cores = cpus(host_rows)
    return JobUsage(
        job,
        job.info.host or "unknown host",
        cores,
        samples.num_rows,
        tuple(job_series(samples, cores)),
        tuple(host_series(host_rows)),
        damage,
        since_ns,
        last_ns,
    )
