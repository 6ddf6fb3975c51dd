"""Series of step times and samples in few figures: their spread, their curve and their shift."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log
from statistics import fmean, median, quantiles
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ..store.columns import column_list, flagged, pc

#: Minimum number of entries of steps before a shift and after it.
SIDE_MIN: Final = 15
#: Minimum factor between the medians of the two sides.
FACTOR_MIN: Final = 1.5
#: Later steps must take longer than this decile of the earlier steps, given by its index.
_SEPARATING_DECILE: Final = 7
#: Maximum factor by which the steps of one side may grow over time. If they grow more, the steps
#: become slower gradually.
_DRIFT_MAX: Final = 1.3


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


def weighted_median(values: Iterable[tuple[float, int]]) -> float:
    """Return the median of one or more values, each with its number of occurrences."""
    ordered = sorted(values)
    counts, half = accumulate(number for _, number in ordered), sum(number for _, number in ordered) / 2
    return next(value for (value, _), count in zip(ordered, counts, strict=True) if count >= half)


def timed_step_count(spans: pa.Table) -> int:
    """Return the number of timed steps in ``spans``."""
    timed_per_row = pc.invert(flagged(spans, layout.FLAG_FAILED)).cast(pa.uint32())
    return _sum(pc.if_else(flagged(spans, layout.FLAG_SAMPLED), timed_per_row, spans["count"]))


@dataclass(frozen=True, slots=True)
class Buckets:
    """A series in points; each has the start of its part of the series in real ns.

    ``whole_mean``: the mean of all steps or samples. ``numbers``: of steps, the number of the first
    step of each part; empty for other series.
    """

    times_ns: tuple[int, ...]
    least: tuple[float, ...]
    mean: tuple[float, ...]
    most: tuple[float, ...]
    whole_mean: float
    numbers: tuple[int, ...] = ()


def bucket_steps(spans: pa.Table, points_max: int) -> Buckets:
    """Return the times of the steps in ``spans`` (ns) in at most ``points_max`` points."""
    ordered = spans.sort_by("start_ns")
    size = max(1, -(-ordered.num_rows // points_max))
    number = pc.divide(pa.array(range(ordered.num_rows), pa.int64()), pa.scalar(size, pa.int64()))
    rows = (
        ordered.append_column("bucket", number)
        .group_by("bucket")
        .aggregate(
            [
                ("start_ns", "min"),
                ("ordinal", "min"),
                ("min_ns", "min"),
                ("max_ns", "max"),
                ("total_ns", "sum"),
                ("count", "sum"),
            ]
        )
        .sort_by("bucket")
    )
    counts = [max(1, steps) for steps in column_list(rows, "count_sum")]
    totals = column_list(rows, "total_ns_sum")
    return Buckets(
        tuple(column_list(rows, "start_ns_min")),
        tuple(column_list(rows, "min_ns_min")),
        tuple(total / steps for total, steps in zip(totals, counts, strict=True)),
        tuple(column_list(rows, "max_ns_max")),
        sum(totals) / sum(counts),
        tuple(column_list(rows, "ordinal_min")),
    )


def bucket_values(times_ns: Sequence[int], values: Sequence[float], points_max: int) -> Buckets:
    """Return ``values`` in at most ``points_max`` points."""
    size = max(1, -(-len(values) // points_max))
    parts = [values[at : at + size] for at in range(0, len(values), size)]
    return Buckets(
        tuple(times_ns[::size]),
        tuple(map(min, parts)),
        tuple(sum(part) / len(part) for part in parts),
        tuple(map(max, parts)),
        fmean(values),
    )


class LevelShift(NamedTuple):
    """An increase of the step times that lasts until the last step.

    ``first``: index of the first slower entry. ``before_ns`` and ``now_ns``: median step times.
    ``is_gradual``: the times grow all along, instead of at one step.
    """

    first: int
    before_ns: float
    now_ns: float
    is_gradual: bool = False


def level_shift(times_ns: Sequence[float]) -> LevelShift | None:
    """Return the shift in step times in order of time (ns, positive), None if there is none.

    The step of the shift is that where the sum of the deviations from the mean is lowest; times are
    compared by their logarithms.
    """
    if len(times_ns) < 2 * SIDE_MIN:
        return None
    logs = [log(max(1.0, time_ns)) for time_ns in times_ns]
    mean = fmean(logs)
    sums = list(accumulate(value - mean for value in logs))
    index = min(range(len(sums)), key=sums.__getitem__) + 1
    before, after = times_ns[:index], times_ns[index:]
    if min(len(before), len(after)) < SIDE_MIN:
        return None
    shift = LevelShift(index, median(before), median(after), _grows(before) or _grows(after))
    is_separate = (
        quantiles(before, n=10)[_SEPARATING_DECILE] < quantiles(after, n=10)[-1 - _SEPARATING_DECILE]
        and median(after[-SIDE_MIN:]) > (shift.before_ns * shift.now_ns) ** 0.5
    )
    return shift if is_separate and shift.now_ns >= FACTOR_MIN * shift.before_ns else None


def _grows(times_ns: Sequence[float]) -> bool:
    third = max(1, len(times_ns) // 3)
    return median(times_ns[-third:]) > _DRIFT_MAX * median(times_ns[:third])
