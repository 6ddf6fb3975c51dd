"""Totals of a job that only grow: its steps, their times as histograms, and its alerts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from ...formats import layout, span_kinds
from ..store.columns import constant, flagged, flat_table, occurrences, pc, row_tuples
from .kinds import step_kind_of
from .steps import SPECIAL, rows_of_kinds

#: Upper bounds of the buckets of step times (ns): 0.1 ms, and each twice the one before, up to
#: 105 s. The last bucket has no bound.
BOUNDS_NS: Final = tuple(10**5 << number for number in range(21))
#: Maximum number of kinds of a job that have a histogram; each function is a kind.
KINDS_MAX: Final = 16
_SPAN_COLUMNS: Final = ("kind", "key", "flags", "count", "total_ns")
#: Number that stands for the bucket of steps whose times are not representative.
_NO_BUCKET: Final = -1


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of steps in each bucket of BOUNDS_NS, and the sum of their times (ns)."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_NS) + 1)
    sum_ns: float = 0.0

    def plus(self, bucket: int, count: int, time_ns: float) -> "Histogram":
        """Return this histogram with ``count`` more steps in ``bucket``, which took ``time_ns``."""
        before, number, after = self.counts[:bucket], self.counts[bucket], self.counts[bucket + 1 :]
        return Histogram((*before, number + count, *after), self.sum_ns + time_ns)


class JobTotals:
    """Adds up the rows of a job as they arrive.

    ``steps``: number of successful steps by span kind. ``times``: histogram of the normal steps by
    kind, as in `tfprof steps`. A row with several steps stands for that many steps of its mean
    duration. ``steps_left_out``: number of steps of further kinds, which have no histogram.
    ``alerts``: number of alerts by slug.
    """

    def __init__(self) -> None:
        self.steps: dict[int, int] = {}
        self.times: dict[int, Histogram] = {}
        self.steps_left_out = 0
        self.alerts: dict[str, int] = {}

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Add new rows of SPANS and ALERTS; other tables are ignored."""
        if "spans" in tables:
            self._add_spans(flat_table(tables["spans"].select(_SPAN_COLUMNS)))
        if "alerts" in tables:
            for slug, count in occurrences(tables["alerts"]["slug"]):
                self.alerts[slug] = self.alerts.get(slug, 0) + count

    def _add_spans(self, spans: pa.Table) -> None:
        spans = rows_of_kinds(spans, span_kinds.steps())
        spans = spans.filter(pc.invert(flagged(spans, layout.FLAG_FAILED)))
        spans = spans.filter(pc.greater(spans["count"], constant(0, pa.uint32())))  # a forged log may have 0
        total_ns = pc.max_element_wise(pc.cast(spans["total_ns"], pa.float64(), safe=False), constant(0, pa.float64()))
        mean_ns = pc.divide(total_ns, pc.cast(spans["count"], pa.float64()))
        bucket = pc.if_else(flagged(spans, SPECIAL), constant(_NO_BUCKET, pa.int64()), _buckets(mean_ns))
        columns = {
            "kind": spans["kind"],
            "key": spans["key"],
            "bucket": bucket,
            "count": spans["count"],
            "ns": total_ns,
        }
        sums = (
            pa.table(columns)
            .group_by(["kind", "key", "bucket"], use_threads=False)
            .aggregate([("count", "sum"), ("ns", "sum")])
        )
        for kind, key, number, count, time_ns in row_tuples(sums, "kind", "key", "bucket", "count_sum", "ns_sum"):
            self.steps[kind] = self.steps.get(kind, 0) + count
            if number != _NO_BUCKET:
                self._add_times(step_kind_of(kind, key), number, count, time_ns)

    def _add_times(self, kind: int, bucket: int, count: int, time_ns: float) -> None:
        if kind not in self.times and len(self.times) >= KINDS_MAX:
            self.steps_left_out += count
            return
        self.times[kind] = self.times.get(kind, Histogram()).plus(bucket, count, time_ns)


def _buckets(mean_ns: Any) -> Any:
    """Return the bucket of each time: the number of bounds below it."""
    doublings = pc.ceil(pc.log2(pc.divide(mean_ns, constant(BOUNDS_NS[0], pa.float64()))))
    limited = pc.min_element_wise(doublings, constant(len(BOUNDS_NS), pa.float64()))
    return pc.max_element_wise(limited, constant(0, pa.float64())).cast(pa.int64())
