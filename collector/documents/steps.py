"""The step times of a job."""

from typing import Annotated, Literal, TypedDict

from ..query.job_steps import JobSteps
from ..summaries.kinds import end_of
from ..summaries.steps import StepGroup
from .events import EventDocument
from .fields import fields
from .spread import SpreadDocument


class StepGroupDocument(TypedDict):
    """The steps of one kind, or of one call of a kind."""

    kind: Annotated[str, "The kind of step."]
    call: Annotated[str, "What distinguishes the call: its fetches, or the function's name."]
    key: Annotated[int, "The key of the call, a number."]
    count: Annotated[int, "The number of all steps."]
    failed: Annotated[int, "The number of failed steps."]
    setup: Annotated[int, "The number of steps that also set something up, such as the first one."]
    untraced: Annotated[SpreadDocument | None, "The times of untraced steps; null without any."]
    traced: Annotated[SpreadDocument | None, "The times of traced steps; null without any."]
    requested: Annotated[int, "The number of steps whose trace the job itself requested."]
    traced_cost_ns: Annotated[float | None, "How much longer a traced step takes, median, ns; null if unknown."]
    traced_cost_share: Annotated[float | None, "The same as a share of an untraced step; null if unknown."]
    traced_cost_pairs: Annotated[int, "The number of traced steps in this median."]


class StepDocument(TypedDict):
    """One step, or several short ones that were recorded together."""

    kind: Annotated[str, "The kind of step."]
    ordinal: Annotated[int, "The number of the step, or of the first of several."]
    count: Annotated[int, "The number of steps."]
    start_ns: Annotated[int, "When the first step started, ns since 1970."]
    mean_ns: Annotated[float, "The mean time of these steps, ns."]
    traced: Annotated[bool, "Whether the step was traced."]
    requested: Annotated[bool, "Whether the job itself requested the trace."]
    failed: Annotated[bool, "Whether the step failed."]
    setup: Annotated[bool, "Whether the step also set something up, such as the first one."]
    sampled: Annotated[bool, "Whether only the last of these steps was timed."]


class StepsDocument(TypedDict):
    """The step times of a job."""

    schema: Annotated[Literal["tfprof.steps/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    range: Annotated[list[int | None] | None, "The first and the last selected step (--steps); null for all."]
    since_ns: Annotated[int | None, "Only steps that began then or later (--since), ns since 1970; null for all."]
    counts: Annotated[dict[str, int], "The number of spans by kind, also without an entry; of a selection, its steps."]
    timed: Annotated[dict[str, int], "The number of timed steps by kind."]
    kinds: Annotated[list[StepGroupDocument], "The steps by kind, the most important first; each function is a kind."]
    groups: Annotated[list[StepGroupDocument], "The steps by kind and call, in order of kind, then of total time."]
    entries: Annotated[int, "The number of stored entries."]
    steps: Annotated[
        list[StepDocument], "The last entries in order of their start (--last, --all), or the longest (--top)."
    ]
    events: Annotated[list[EventDocument], "The events of the job."]
    note: Annotated[str | None, "Why no step was traced, or how many could not be; null if there are none."]


def steps_document(job_steps: JobSteps) -> StepsDocument:
    """Return the step times of a job by kind, and its last span entries one by one."""
    steps, selection = job_steps.steps, job_steps.selection
    return {
        "schema": "tfprof.steps/1",
        "job": job_steps.job.info.hex,
        "range": None if selection.steps is None else [selection.steps[0], end_of(selection.steps)],
        "since_ns": selection.since_ns or None,
        "counts": dict(job_steps.counts),
        "timed": dict(steps.timed),
        "kinds": list(map(_group, steps.kinds)),
        "groups": list(map(_group, steps.groups)),
        "entries": steps.entry_count,
        "steps": [fields(StepDocument, entry) for entry in steps.listed_entries],
        "events": [fields(EventDocument, event) for event in job_steps.events],
        "note": job_steps.note,
    }


def _group(group: StepGroup) -> StepGroupDocument:
    cost = group.cost
    return fields(
        StepGroupDocument,
        group,
        untraced=None if group.untraced is None else fields(SpreadDocument, group.untraced),
        traced=None if group.traced is None else fields(SpreadDocument, group.traced),
        traced_cost_ns=None if cost is None else cost.ns,
        traced_cost_share=None if cost is None else cost.share,
        traced_cost_pairs=0 if cost is None else cost.pairs,
    )
