"""The parts of the steps of a job."""

from collections.abc import Iterable
from typing import Annotated, Literal, TypedDict

from ..query.breakdown import JobBreakdown
from ..summaries.parts import Breakdown, Detail, Part, part_verdict
from .fields import fields


class PartDetailDocument(TypedDict):
    """What takes the time of a part."""

    name: Annotated[str, "What it is: a phase of training, a kind of step, a callback, …"]
    mean_ns: Annotated[float, "Its mean time in a step, ns."]
    share: Annotated[float, "Its share of the time from start to start, a fraction of 1."]


class PartDocument(TypedDict):
    """A part of the step."""

    slug: Annotated[str, "The part: input, before, device, launch, copies, waiting, after, tracing, between, python, …"]
    name: Annotated[str, "The part as text."]
    mean_ns: Annotated[float, "Its mean time in a step, ns."]
    share: Annotated[float, "Its share of the time from start to start, a fraction of 1."]
    evidence: Annotated[str, "Where the figure is from: traced steps, all timed steps, samples."]
    details: Annotated[list[PartDetailDocument], "What takes the time, as far as it is known; the most first."]


class StepPartsDocument(TypedDict):
    """The parts of the steps of one kind. They add up to the time from start to start."""

    kind: Annotated[str, "The kind of step."]
    verdict: Annotated[str, "One sentence about the parts."]
    steps: Annotated[int, "The number of steps that count."]
    timed_steps: Annotated[int, "The number of all timed steps of this kind and thread."]
    traced_steps: Annotated[int, "The number of traced steps whose inside was cut."]
    period_ns: Annotated[float, "The mean time from the start of a step to the start of the next one, ns."]
    step_ns: Annotated[float, "The mean time of a step, ns."]
    median_ns: Annotated[float, "The median time of a step, ns."]
    parts: Annotated[list[PartDocument], "The parts in the order of a step."]
    pipeline: Annotated[
        list[PartDetailDocument],
        "The user's functions in the input pipeline, which run beside the steps: no part of the sum.",
    ]
    marked: Annotated[
        list[PartDetailDocument],
        "What the job's code marks as parts, which may contain parts or whole steps: no part of the sum.",
    ]
    notes: Annotated[list[str], "What limits these figures."]


class BreakdownDocument(TypedDict):
    """The parts of the steps of a job."""

    schema: Annotated[Literal["tfprof.breakdown/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    kinds: Annotated[list[StepPartsDocument], "The selected kinds of steps, the main kind first."]


def breakdown_document(answer: JobBreakdown) -> BreakdownDocument:
    """Return the parts of the steps of a job."""
    return {
        "schema": "tfprof.breakdown/1",
        "job": answer.job.info.hex,
        "kinds": list(map(step_parts, answer.breakdowns)),
    }


def step_parts(breakdown: Breakdown) -> StepPartsDocument:
    """Return the parts of the steps of one kind."""
    return fields(
        StepPartsDocument,
        breakdown,
        verdict=part_verdict(breakdown),
        timed_steps=breakdown.all_steps,
        traced_steps=breakdown.traced,
        parts=[_part(part, breakdown) for part in breakdown.parts],
        pipeline=_details(breakdown.pipeline, breakdown),
        marked=_details(breakdown.marked, breakdown),
        notes=list(breakdown.notes),
    )


def _part(part: Part, breakdown: Breakdown) -> PartDocument:
    return fields(
        PartDocument,
        part,
        name=part.title,
        share=breakdown.share(part.slug),
        details=_details(part.details, breakdown),
    )


def _details(details: Iterable[Detail], breakdown: Breakdown) -> list[PartDetailDocument]:
    return [fields(PartDetailDocument, detail, share=detail.mean_ns / breakdown.period_ns) for detail in details]
