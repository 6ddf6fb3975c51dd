"""The comparison of runs before and after a change."""

from typing import Annotated, Literal, TypedDict

from ..query.diffing import Diff, Run, ops_by_change
from ..summaries.comparison import Change, OpChange
from ..summaries.parts import TITLES
from .fields import fields


class RunDocument(TypedDict):
    """A run of one side."""

    job: Annotated[str, "The id of the job."]
    name: Annotated[str, "The name of the job."]
    host: Annotated[str, "The host of the job."]
    started_ns: Annotated[int, "When the job started, ns since 1970."]
    steps: Annotated[int, "The number of its steps of the main kind."]
    step_ns: Annotated[float | None, "The median time of its untraced steps, ns; null if none was timed."]
    others_cores: Annotated[float | None, "CPUs of the host that others used meanwhile; null if unknown."]


class DifferenceDocument(TypedDict):
    """A fact that differs exactly."""

    what: Annotated[str, "The name of the fact."]
    before: Annotated[str, "Its value before."]
    after: Annotated[str, "Its value after."]


class RatioFields(TypedDict):
    """How a time changed; all fields are null if a side has no such time."""

    ratio: Annotated[float | None, "The time after divided by that before."]
    own_ratio: Annotated[float | None, "`ratio` without the factor that all ops have in common."]
    visible: Annotated[float | None, "The smallest relative change that these runs can show."]
    significant: Annotated[bool | None, "Whether the own change is beyond noise; null with one run a side."]
    runs: Annotated[int | None, "The number of runs a side that would show a change of 10 %."]


class StepChangeDocument(RatioFields):
    """How the time of a step changed."""

    before_ns: Annotated[float, "The time before, ns, the geometric mean of the runs."]
    after_ns: Annotated[float, "The time after, ns."]


class OpDifferenceDocument(RatioFields):
    """How the time of an op type changed."""

    op: Annotated[str, "The op type."]
    device: Annotated[str, "The device in short: CPU:0, GPU:1."]
    before_ns: Annotated[float | None, "The time in a step before, ns; null if it did not run."]
    after_ns: Annotated[float | None, "The time in a step after, ns; null if it did not run."]


class PartChangeDocument(TypedDict):
    """How a part of the step changed."""

    slug: Annotated[str, "The part, as in the document of `tfprof breakdown`."]
    name: Annotated[str, "The part as text."]
    before_ns: Annotated[float, "Its mean time in a step before, ns, the mean of the runs; 0 if it has none."]
    after_ns: Annotated[float, "Its mean time in a step after, ns."]


class DiffDocument(TypedDict):
    """How runs after a change differ from those before."""

    schema: Annotated[Literal["tfprof.diff/1"], "The format and its version."]
    before: Annotated[list[RunDocument], "The runs before the change."]
    after: Annotated[list[RunDocument], "The runs after the change."]
    differences: Annotated[list[DifferenceDocument], "What differs exactly."]
    step: Annotated[StepChangeDocument | None, "How the time of a step changed; null if none was timed."]
    parts: Annotated[list[PartChangeDocument], "The parts of a step, in their order; empty if a side has none."]
    common_ratio: Annotated[float, "The factor that the times of all ops have in common."]
    ops: Annotated[list[OpDifferenceDocument], "The op types, those beyond noise first, then the largest changes."]
    partial_ops: Annotated[list[str], "Op types with their device that some run lacks; they are not compared."]


def diff_document(result: Diff) -> DiffDocument:
    """Return the comparison: the runs, what differs exactly, and how the times changed."""
    return {
        "schema": "tfprof.diff/1",
        "before": list(map(_run, result.before)),
        "after": list(map(_run, result.after)),
        "differences": [fields(DifferenceDocument, each) for each in result.differences],
        "step": None if result.step is None else _step(result.step),
        "parts": [fields(PartChangeDocument, part, name=TITLES[part.slug]) for part in result.parts],
        "common_ratio": result.ops.common_ratio,
        "ops": list(map(_op, ops_by_change(result))),
        "partial_ops": list(result.partial),
    }


def _run(run: Run) -> RunDocument:
    return fields(RunDocument, run.row, job=run.row.uid, step_ns=run.step_ns, others_cores=run.others_cores)


def _step(change: Change) -> StepChangeDocument:
    return {"before_ns": change.before_ns, "after_ns": change.after_ns, **fields(RatioFields, change)}


def _op(op: OpChange) -> OpDifferenceDocument:
    return {
        "op": op.op,
        "device": op.device,
        "before_ns": op.before_ns,
        "after_ns": op.after_ns,
        **(_UNKNOWN if op.change is None else fields(RatioFields, op.change)),
    }


_UNKNOWN: RatioFields = {"ratio": None, "own_ratio": None, "visible": None, "significant": None, "runs": None}
