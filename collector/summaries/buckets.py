"""Long series in few points: equal parts, each with its minimum, mean and maximum."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..store.columns import column_list, pc


@dataclass(frozen=True, slots=True)
class Buckets:
    """A series in points; each has the start of its part of the series in real ns.

    ``numbers``: of steps, the number of the first step of each part; empty for other series.
    """

    times_ns: tuple[int, ...]
    least: tuple[float, ...]
    mean: tuple[float, ...]
    most: tuple[float, ...]
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
    )
