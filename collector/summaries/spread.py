"""The spread of step times; one row may represent many short steps."""

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...formats import layout

_SAMPLED: Final[Any] = pa.scalar(layout.FLAG_SAMPLED, pa.uint16())
_FAILED: Final[Any] = pa.scalar(layout.FLAG_FAILED, pa.uint16())


@dataclass(frozen=True, slots=True)
class Spread:
    """The number, percentiles, extremes, mean and sum of times.

    ``timed``: number of times that were measured; the others are estimates.
    """

    count: int
    p50_ns: float
    p90_ns: float
    p99_ns: float
    min_ns: int
    max_ns: int
    mean_ns: float
    total_ns: int
    timed: int


def _sum(values: Any) -> int:
    return int(pc.sum(values).as_py() or 0)


def _percentile(times: Any, cumulative_counts: Any, percent: int, count: int) -> float:
    """Return a percentile of all times: the smallest time that ``percent`` % of them do not exceed.

    ``times`` are sorted, and each may stand for several equal times. ``cumulative_counts``: the
    number of all times up to each of ``times``. ``count``: the number of all times.
    """
    rank = -(-percent * count // 100)
    index = _sum(pc.less(cumulative_counts, pa.scalar(rank, pa.float64())))
    return float(times[min(index, len(times) - 1)].as_py())


def spread(spans: pa.Table) -> Spread | None:
    """Return the spread of the durations in ``spans`` (columns of schema.SPANS), None without rows.

    A row with ``count`` steps stands for that many steps of its mean duration. In a sampled row,
    at most one step was timed.
    """
    if not spans.num_rows:
        return None
    counts = pc.cast(spans["count"], pa.float64())
    means = pc.divide(pc.cast(spans["total_ns"], pa.float64(), safe=False), counts)
    order = pc.sort_indices(means)
    times, cumulative_counts = means.take(order), pc.cumulative_sum(counts.take(order))
    count, total = _sum(spans["count"]), _sum(spans["total_ns"])
    p50, p90, p99 = (_percentile(times, cumulative_counts, percent, count) for percent in (50, 90, 99))
    min_ns, max_ns = int(pc.min(spans["min_ns"]).as_py()), int(pc.max(spans["max_ns"]).as_py())
    return Spread(count, p50, p90, p99, min_ns, max_ns, total / count, total, timed_step_count(spans))


def timed_step_count(spans: pa.Table) -> int:
    """Return the number of timed steps in ``spans``."""
    sampled = pc.not_equal(pc.bit_wise_and(spans["flags"], _SAMPLED), pa.scalar(0, pa.uint16()))
    failed = pc.not_equal(pc.bit_wise_and(spans["flags"], _FAILED), pa.scalar(0, pa.uint16()))
    timed_per_row = pc.if_else(failed, pa.scalar(0, pa.uint32()), pa.scalar(1, pa.uint32()))
    return _sum(pc.if_else(sampled, timed_per_row, spans["count"]))
