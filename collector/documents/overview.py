"""The summary of one job."""

from typing import Annotated, Literal, TypedDict

from ..query.overview import Overview, TopOps
from .breakdown import StepPartsDocument, step_parts
from .events import EventDocument
from .fields import fields
from .jobs import JobFields
from .ops import OpDocument
from .series import SeriesDocument, series_documents
from .spread import SpreadDocument


class PhaseDocument(TypedDict):
    """A phase of a job: the start, a kind of span, or the end."""

    name: Annotated[str, "starting, the kind of span, ending, or `no step since`."]
    count: Annotated[int, "The number of its spans."]
    total_ns: Annotated[int, "Their total time, ns."]
    running: Annotated[bool, "Whether the phase has not ended."]


class StepTimesDocument(TypedDict):
    """The step times of one kind; each function is a kind."""

    kind: Annotated[str, "The kind of step."]
    count: Annotated[int, "The number of steps, including those that were not timed."]
    spread: Annotated[SpreadDocument, "The times of untraced steps; of traced ones if there are no others."]
    traced: Annotated[bool, "Whether the times are those of traced steps."]
    curve: Annotated[list[float], "Mean step times over the whole job, ns, the earliest first."]
    since: Annotated[int, "If these are the steps since the job became slower, the number of the first one; else 0."]


class TopOpsDocument(TypedDict):
    """The op types of the traced steps of the main kind, the longest time first."""

    steps: Annotated[int, "The number of traced steps."]
    kinds: Annotated[dict[str, int], "The number of traced steps by kind of step."]
    ops: Annotated[list[OpDocument], "The op types, each on a device."]
    why: Annotated[str | None, "The reason if there are none."]


class AdviceItemDocument(TypedDict):
    """One piece of advice."""

    slug: Annotated[str, "The checker (docs/advice.md)."]
    title: Annotated[str, "The title of the checker."]
    text: Annotated[str, "The finding."]
    line: Annotated[str, "The user's line; empty if there is none."]
    todo: Annotated[str, "The remedy; empty if there is none."]


class ShowDocument(JobFields):
    """The summary of one job."""

    schema: Annotated[Literal["tfprof.show/1"], "The format and its version."]
    job: Annotated[str, "The id of the job, as `uid`."]
    tags: Annotated[list[str], "The tags of the job."]
    command: Annotated[
        list[str] | None, "The command line (--record-command), *** for values that may be secrets; null if not stored."
    ]
    phases: Annotated[list[PhaseDocument], "The phases of the job in their order."]
    step_times: Annotated[list[StepTimesDocument], "Step times by kind: the main kind first, then by total time."]
    median_kind: Annotated[
        str | None, "The kind in `step_times` whose median stands for the job; null if it has traced steps only."
    ]
    parts: Annotated[StepPartsDocument | None, "The parts of the steps of the main kind; null if none was timed."]
    top_ops: Annotated[TopOpsDocument, "The op types with the longest times."]
    compiled: Annotated[bool, "Whether XLA compiled some of the ops; `tfprof compiled` shows the programs."]
    cpus: Annotated[int | None, "The number of CPUs of the host; null if it is unknown."]
    samples: Annotated[int, "The number of samples, one a second."]
    job_series: Annotated[dict[str, SeriesDocument], "Resource use of the job's processes, by name."]
    host_series: Annotated[dict[str, SeriesDocument], "Resource use of the host while the job ran, by name."]
    alerts: Annotated[list[str], "The alerts about the job, each as a sentence with its slug."]
    warnings: Annotated[list[EventDocument], "Unusual events of the job."]
    notes: Annotated[list[str], "What to know about these figures."]
    advice: Annotated[list[AdviceItemDocument], "Advice, the most important first."]


def show_document(overview: Overview) -> ShowDocument:
    """Return the summary of a job."""
    return {
        "schema": "tfprof.show/1",
        "job": overview.job.info.hex,
        **fields(JobFields, overview.row),
        "tags": list(overview.tags),
        "command": list(overview.command) or None,
        "phases": [fields(PhaseDocument, stage) for stage in overview.stages],
        "step_times": [
            fields(StepTimesDocument, times, spread=fields(SpreadDocument, times.spread)) for times in overview.steps
        ],
        "median_kind": overview.median.kind if overview.median else None,
        "parts": step_parts(overview.parts) if overview.parts else None,
        "top_ops": _top_ops(overview.ops),
        "compiled": overview.is_compiled,
        "cpus": overview.usage.cpus,
        "samples": overview.usage.samples,
        "job_series": series_documents(overview.usage.job_series),
        "host_series": series_documents(overview.usage.host_series),
        "alerts": overview.alerts,
        "warnings": [fields(EventDocument, event) for event in overview.warnings],
        "notes": overview.notes,
        "advice": [fields(AdviceItemDocument, item) for item in overview.advice],
    }


def _top_ops(ops: TopOps) -> TopOpsDocument:
    return {"steps": ops.steps, "kinds": ops.kinds, "ops": [fields(OpDocument, op) for op in ops.ops], "why": ops.why}
