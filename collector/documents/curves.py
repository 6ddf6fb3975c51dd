"""The document of `tfprof curves`."""

from typing import Annotated, Literal, TypedDict

from ..query.curves import JobCurves, ResourceCurve, StepCurve
from ..summaries.series import Buckets


class CurvePoints(TypedDict):
    """A curve in equal parts; the lists have an entry for each part."""

    times_ns: Annotated[list[int], "The start of each part (real time, ns)."]
    least: Annotated[list[float], "The smallest value in each part."]
    mean: Annotated[list[float], "The mean of each part."]
    most: Annotated[list[float], "The largest value in each part."]
    steps: Annotated[list[int] | None, "The number of the first step of each part; null if these are no steps."]


class StepCurveDocument(TypedDict):
    """The times of the steps of one kind, in ns."""

    kind: Annotated[str, "The kind of step."]
    normal: Annotated[CurvePoints | None, "The steps that were not traced; null without any."]
    traced: Annotated[CurvePoints | None, "The traced steps; null without any."]
    traced_steps: Annotated[list[list[int]], "The numbers of the last traced steps: first and last of each range."]


class ResourceCurveDocument(TypedDict):
    """One quantity of the job's processes or of its host."""

    scope: Annotated[Literal["job", "host"], "Whose quantity it is."]
    name: Annotated[str, "The quantity; the name ends in its unit."]
    points: Annotated[CurvePoints, "The curve."]


class CurvesDocument(TypedDict):
    """Step times and resource use of a job over its whole run."""

    schema: Annotated[Literal["tfprof.curves/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    cpus: Annotated[int, "The number of CPUs of the host; 0 if unknown."]
    step_curves: Annotated[list[StepCurveDocument], "The kinds of steps, the one with the largest total time first."]
    resource_curves: Annotated[list[ResourceCurveDocument], "The quantities of the job, then those of its host."]
    damaged: Annotated[list[str], "Why the samples of the host could not be read."]


def curves_document(curves: JobCurves) -> CurvesDocument:
    """Return the curves of a job."""
    return {
        "schema": "tfprof.curves/1",
        "job": curves.job.info.hex,
        "cpus": curves.cpus or 0,
        "step_curves": list(map(_steps, curves.steps)),
        "resource_curves": list(map(_resource, curves.resources)),
        "damaged": [curves.damage] if curves.damage else [],
    }


def _steps(curve: StepCurve) -> StepCurveDocument:
    return {
        "kind": curve.kind,
        "normal": None if curve.normal is None else _points(curve.normal),
        "traced": None if curve.traced is None else _points(curve.traced),
        "traced_steps": list(map(list, curve.ranges)),
    }


def _resource(curve: ResourceCurve) -> ResourceCurveDocument:
    scope: Literal["job", "host"] = "job" if curve.scope == "job" else "host"
    return {"scope": scope, "name": curve.name, "points": _points(curve.points)}


def _points(points: Buckets) -> CurvePoints:
    return {
        "times_ns": list(points.times_ns),
        "least": list(points.least),
        "mean": list(points.mean),
        "most": list(points.most),
        "steps": list(points.numbers) or None,
    }
