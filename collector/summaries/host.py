"""Resource use of a job's processes and of its host.

The rates and levels come from one sample per second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity over time: its name with the unit, and a value for each sample or interval.

    ``times_ns``: the time of each sample, or the end of each interval.
    """

    name: str
    values: tuple[float, ...]
    times_ns: tuple[int, ...] = ()

    @property
    def mean(self) -> float | None:
        """Mean of the values, None without any."""
        return sum(self.values) / len(self.values) if self.values else None

    @property
    def maximum(self) -> float | None:
        """Largest value, None without any."""
        return max(self.values, default=None)


class _Source(NamedTuple):
    """The definition of a series: its name, and the columns that it sums.

    A column with a minus sign is subtracted. ``is_rate``: whether the columns are counters, which
    are shown as rates; otherwise they are levels.
    """

    name: str
    columns: tuple[str, ...]
    is_rate: bool = False


_JOB_SOURCES: Final = (
    _Source("cpu_cores", ("cpu_user_s", "cpu_system_s"), is_rate=True),
    _Source("rss_bytes", ("rss_bytes",)),
    _Source("read_bytes_per_s", ("read_bytes",), is_rate=True),
    _Source("write_bytes_per_s", ("write_bytes",), is_rate=True),
    _Source("processes", ("processes",)),
    _Source("threads", ("threads",)),
)
_HOST_SOURCES: Final = (
    _Source("cpu_cores", ("cpu_busy_s",), is_rate=True),
    _Source("iowait_cores", ("cpu_iowait_s",), is_rate=True),
    _Source("load_1m", ("load_1m",)),
    _Source("memory_used_bytes", ("memory_total_bytes", "-memory_available_bytes")),
    _Source("swap_used_bytes", ("swap_used_bytes",)),
    _Source("disk_read_bytes_per_s", ("disk_read_bytes",), is_rate=True),
    _Source("disk_write_bytes_per_s", ("disk_write_bytes",), is_rate=True),
    _Source("net_received_bytes_per_s", ("net_received_bytes",), is_rate=True),
    _Source("net_sent_bytes_per_s", ("net_sent_bytes",), is_rate=True),
)


def _column(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table[name.removeprefix("-")].to_pylist()
    return [-value for value in values] if name.startswith("-") else values


def _rates(times: Sequence[int], totals: Sequence[float], maximum: float = inf) -> tuple[float, ...]:
    """Return the growth of ``totals`` per second in each interval between two ``times`` (ns).

    Growth above ``maximum`` per second is moved to earlier intervals. What does not fit into any of
    them is left out. Growth can exceed ``maximum``: CPU time is counted in ticks and read just
    after the clock, and a process that is found late adds all its time at once. A decrease counts
    as 0.
    """
    pairs = zip(pairwise(times), pairwise(totals), strict=True)
    intervals = [
        ((time_after - time_before) / 1e9, max(0.0, total_after - total_before))
        for (time_before, time_after), (total_before, total_after) in pairs
        if time_after > time_before
    ]
    rates, excess = [], 0.0
    for seconds, growth in reversed(intervals):
        amount = min(growth + excess, maximum * seconds)
        excess += growth - amount
        rates.append(amount / seconds)
    return tuple(reversed(rates))


def _series(table: pa.Table, sources: Sequence[_Source], cores: int | None) -> list[Series]:
    table = table.sort_by("t_ns")
    times: list[Any] = table["t_ns"].to_pylist()
    ends = tuple(after for before, after in pairwise(times) if after > before)
    series = []
    for source in sources:
        totals = [sum(row) for row in zip(*(_column(table, name) for name in source.columns), strict=True)]
        maximum = float(cores) if cores and source.name.endswith("_cores") else inf
        series.append(
            Series(source.name, _rates(times, totals, maximum), ends)
            if source.is_rate
            else Series(source.name, tuple(map(float, totals)), tuple(times))
        )
    return series


def samples_between(samples: pa.Table, first_ns: int, last_ns: int) -> pa.Table:
    """Return the samples in an interval of real time (ns), and the last one before it.

    That sample is needed for the first rate in the interval.
    """
    times, first, last = samples["t_ns"], pa.scalar(first_ns), pa.scalar(last_ns)
    earlier_samples = samples.filter(pc.less(times, first)).sort_by("t_ns")
    interval_samples = samples.filter(pc.and_(pc.greater_equal(times, first), pc.less_equal(times, last)))
    return pa.concat_tables([earlier_samples.slice(max(0, earlier_samples.num_rows - 1)), interval_samples])


def job_series(samples: pa.Table, cores: int | None) -> list[Series]:
    """Return the series of a job's processes from a table of SAMPLES; the host has ``cores`` CPUs.

    A sample taken after the end of the processes has their final counters and no levels.
    """
    has_processes = pc.or_(*(pc.greater(samples[name], pa.scalar(0)) for name in ("rss_bytes", "processes")))
    rates, levels = _series(samples, _JOB_SOURCES, cores), _series(samples.filter(has_processes), _JOB_SOURCES, cores)
    return [rate if source.is_rate else level for source, rate, level in zip(_JOB_SOURCES, rates, levels, strict=True)]


def host_series(samples: pa.Table) -> list[Series]:
    """Return the series of the host from a table of HOST_SAMPLES."""
    return _series(samples, _HOST_SOURCES, cpus(samples))


def cpus(samples: pa.Table) -> int | None:
    """Return the number of CPUs of the host, None without a sample."""
    return int(samples["cpus"][-1].as_py()) if samples.num_rows else None
