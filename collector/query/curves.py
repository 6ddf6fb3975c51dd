"""Step times and resource use of a job over its whole run, in few points."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ...formats import layout, span_kinds
from ..store.columns import flagged, flat, pc, repeat
from ..store.protocols import JobReader
from ..summaries.host import Series, cpus, host_series, job_series
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name, step_kind_of
from ..summaries.series import Buckets, bucket_steps, bucket_values
from ..summaries.steps import SPECIAL, rows_of_kinds
from .job_usage import host_samples

#: Maximum number of points of a curve, each with a minimum and a maximum. Maximum number of kinds
#: of steps.
POINTS_MAX: Final = 2000
_KINDS_MAX: Final = 16
_COLUMNS: Final = ("kind", "key", "ordinal", "count", "start_ns", "total_ns", "min_ns", "max_ns", "flags")


@dataclass(frozen=True, slots=True)
class StepCurve:
    """The step times of one kind: of normal steps, and of those with a trace; None without any."""

    kind: str
    normal: Buckets | None
    traced: Buckets | None


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
    samples = job.table("samples")
    host_rows, damage = host_samples(job, samples)
    cores = cpus(host_rows)
    all_series = (("job", job_series(samples, cores)), ("host", host_series(host_rows)))
    resources = [curve for scope, series in all_series for curve in _resources(scope, series, points_max)]
    return JobCurves(job, tuple(_steps(job, points_max)), tuple(resources), cores, damage)


def _steps(job: JobReader, points_max: int) -> Iterator[StepCurve]:
    names = functions_of(job.info)
    spans = rows_of_kinds(job.table("spans", _COLUMNS), span_kinds.steps())
    normal = spans.filter(pc.invert(flagged(spans, SPECIAL))).drop_columns("flags")
    both = [_by_call(normal), _by_call(_traced(job))]
    totals = pa.concat_tables(both).group_by(["kind", "key"]).aggregate([("total_ns", "sum")])
    rows = totals.sort_by([("total_ns_sum", "descending")]).slice(0, _KINDS_MAX).to_pylist()
    for row in rows:
        of_kind = [
            steps.filter(
                pc.and_(
                    pc.equal(steps["kind"], pa.scalar(row["kind"], pa.uint16())),
                    pc.equal(steps["key"], pa.scalar(row["key"], pa.uint32())),
                )
            )
            for steps in both
        ]
        kind = kind_name(step_kind_of(row["kind"], row["key"]), names)
        yield StepCurve(kind, *(_points(steps, points_max) for steps in of_kind))


def _traced(job: JobReader) -> pa.Table:
    """Return the steps whose traces are stored, with the columns of spans.

    The span of a traced step does not tell whether its trace was lost, and imported jobs have no
    spans.
    """
    traces = rows_of_kinds(job.table("traces", ("kind", "step", "key", "start_ns", "duration_ns")), span_kinds.steps())
    steps = traces.group_by(["kind", "key", "step"]).aggregate([("start_ns", "min"), ("duration_ns", "sum")])
    kind, key, step, start_ns, duration_ns = (flat(column) for column in steps.columns)
    columns = {"kind": kind, "key": key, "ordinal": step, "start_ns": start_ns}
    columns |= dict.fromkeys(("total_ns", "min_ns", "max_ns"), duration_ns)
    return pa.table({**columns, "count": repeat(1, len(step), pa.uint32())}).select(_COLUMNS[:-1])


def _by_call(steps: pa.Table) -> pa.Table:
    """Return ``steps`` with the key 0 for those of all kinds but functions."""
    is_function = pc.equal(steps["kind"], pa.scalar(layout.FUNCTION, pa.uint16()))
    key = pc.if_else(is_function, steps["key"], pa.scalar(0, pa.uint32()))
    return steps.set_column(steps.schema.get_field_index("key"), "key", key)


def _points(spans: pa.Table, points_max: int) -> Buckets | None:
    return bucket_steps(spans, points_max) if spans.num_rows else None


def _resources(scope: str, all_series: Sequence[Series], points_max: int) -> Iterator[ResourceCurve]:
    for series in all_series:
        if series.values:
            yield ResourceCurve(scope, series.name, bucket_values(series.times_ns, series.values, points_max))
