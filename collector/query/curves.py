"""Step times and resource use of a job over its whole run, in few points."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ...formats import span_kinds
from ..store.columns import column_list, flagged, flat, pc, repeat, row_tuples
from ..store.protocols import JobReader
from ..summaries.host import Series
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name, step_kind_of
from ..summaries.series import Buckets, bucket_steps, bucket_values
from ..summaries.steps import SPECIAL, at_measured_starts, rows_of_kinds, sums_by_kind
from .job_usage import job_usage

#: Maximum number of points of a curve, each with a minimum and a maximum. Maximum number of kinds
#: of steps.
POINTS_MAX: Final = 2000
_KINDS_MAX: Final = 16
_COLUMNS: Final = ("kind", "key", "ordinal", "count", "start_ns", "total_ns", "min_ns", "max_ns", "flags")


@dataclass(frozen=True, slots=True)
class StepCurve:
    """The step times of one kind: of normal steps, and of those with a trace; None without any.

    ``ranges``: the numbers of the steps with a trace, as ranges (first, last) in order; the last
    ones, as many as a curve has points.
    """

    kind: str
    normal: Buckets | None
    traced: Buckets | None
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ResourceCurve:
    """One quantity of the job's processes or of its host (``scope``); its name ends in its unit."""

    scope: str
    name: str
    points: Buckets


@dataclass(frozen=True, slots=True)
class JobCurves:
    """The curves of a job; ``cpus`` of its host; ``damage``: why those of the host are missing."""

    job: JobReader
    steps: tuple[StepCurve, ...]
    resources: tuple[ResourceCurve, ...]
    cpus: int | None
    damage: str


def job_curves(job: JobReader, points_max: int = POINTS_MAX) -> JobCurves:
    """Return the curves of ``job``, each in at most ``points_max`` points.

    The kinds of steps are in order of their total time, largest first.
    """
    usage = job_usage(job)
    all_series = (("job", usage.job_series), ("host", usage.host_series))
    resources = [curve for scope, series in all_series for curve in _resources(scope, series, points_max)]
    return JobCurves(job, tuple(_steps(job, points_max)), tuple(resources), usage.cpus, usage.damage)


def _steps(job: JobReader, points_max: int) -> Iterator[StepCurve]:
    names = functions_of(job.info)
    spans = job.table("spans", _COLUMNS)
    normal = at_measured_starts(spans.filter(pc.invert(flagged(spans, SPECIAL))))
    both = [normal.drop_columns("flags"), _traced(job, spans)]
    for kind in list(sums_by_kind(pa.concat_tables(both), "total_ns"))[:_KINDS_MAX]:
        normal, traced = (rows_of_kinds(steps, (kind,)) for steps in both)
        ranges = _ranges(column_list(traced, "ordinal"))[-points_max:]
        yield StepCurve(kind_name(kind, names), _points(normal, points_max), _points(traced, points_max), ranges)


def _ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return numbers as ranges (first, last) in order."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        follows = bool(ranges) and ranges[-1][1] == number - 1
        ranges.append((ranges.pop()[0] if follows else number, number))
    return tuple(ranges)


def _traced(job: JobReader, spans: pa.Table) -> pa.Table:
    """Return the steps whose traces are stored, with the columns of spans.

    A step's time is that of its span. Without a span, as in imported jobs, it is that of the trace.
    """
    traces = rows_of_kinds(job.table("traces", ("kind", "step", "key", "start_ns", "duration_ns")), span_kinds.steps())
    sums = traces.group_by(["kind", "key", "step"]).aggregate([("start_ns", "min"), ("duration_ns", "sum")])
    kinds, keys, steps, start_ns, duration_ns = (flat(column) for column in sums.columns)
    columns = {"kind": kinds, "key": keys, "ordinal": steps, "start_ns": start_ns}
    columns |= dict.fromkeys(("total_ns", "min_ns", "max_ns"), duration_ns)
    traced = pa.table({**columns, "count": repeat(1, len(steps), pa.uint32())}).select(_COLUMNS[:-1])
    special = spans.filter(flagged(spans, SPECIAL)).drop_columns("flags")
    numbers = set(_steps_of(traced))
    with_spans = _of_steps(special, numbers)
    return pa.concat_tables([with_spans, _of_steps(traced, numbers.difference(_steps_of(with_spans)))])


def _steps_of(rows: pa.Table) -> Iterator[tuple[int, int]]:
    """Yield kind and number of each step."""
    return ((step_kind_of(kind, key), step) for kind, key, step in row_tuples(rows, "kind", "key", "ordinal"))


def _of_steps(rows: pa.Table, steps: set[tuple[int, int]]) -> pa.Table:
    return rows.filter(pa.array([step in steps for step in _steps_of(rows)], pa.bool_()))


def _points(spans: pa.Table, points_max: int) -> Buckets | None:
    return bucket_steps(spans, points_max) if spans.num_rows else None


def _resources(scope: str, all_series: Sequence[Series], points_max: int) -> Iterator[ResourceCurve]:
    for series in all_series:
        if series.values:
            yield ResourceCurve(scope, series.name, bucket_values(series.times_ns, series.values, points_max))
