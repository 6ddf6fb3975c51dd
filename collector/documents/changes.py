"""A change of a followed job: one line of `tfprof follow`."""

from typing import Annotated, Literal, TypedDict

from ..query.following import JobChange
from ..summaries.events import EventSummary
from ..summaries.lines import StepLine
from .events import EventDocument
from .fields import fields
from .jobs import JobFields


class JobChangeDocument(JobFields):
    """The job is followed from now on."""

    schema: Annotated[Literal["tfprof.follow/1"], "The format and its version."]
    event: Annotated[Literal["job"], "The kind of change."]
    job: Annotated[str, "The id of the job, as `uid`."]


class StepsChangeDocument(TypedDict):
    """New steps of one kind, or another span that ended."""

    schema: Annotated[Literal["tfprof.follow/1"], "The format and its version."]
    event: Annotated[Literal["steps"], "The kind of change."]
    job: Annotated[str, "The id of the job."]
    id: Annotated[str, "The shortest unique start of the id."]
    kind: Annotated[str, "The kind of span."]
    first: Annotated[int, "The number of the first span."]
    last: Annotated[int, "The number of the last span."]
    count: Annotated[int, "The number of spans."]
    end_ns: Annotated[int, "The end of the last span, ns since 1970."]
    mean_ns: Annotated[float, "The mean time, ns; 0 if no span was timed."]
    min_ns: Annotated[int, "The shortest time, ns; 0 if no span was timed."]
    max_ns: Annotated[int, "The longest time, ns; 0 if no span was timed."]
    traced: Annotated[int, "The number of traced spans."]
    failed: Annotated[int, "The number of failed spans."]
    setup: Annotated[int, "The number of spans that also set something up."]
    timed: Annotated[int, "The number of spans that were timed."]
    entries: Annotated[int, "The number of recorded entries."]


class WarningChangeDocument(EventDocument):
    """An unusual event of the job."""

    schema: Annotated[Literal["tfprof.follow/1"], "The format and its version."]
    event: Annotated[Literal["warning"], "The kind of change."]
    job: Annotated[str, "The id of the job."]
    id: Annotated[str, "The shortest unique start of the id."]


class CollectorChangeDocument(TypedDict):
    """The collector of the job ended, or another one runs."""

    schema: Annotated[Literal["tfprof.follow/1"], "The format and its version."]
    event: Annotated[Literal["collector"], "The kind of change."]
    job: Annotated[str, "The id of the job."]
    id: Annotated[str, "The shortest unique start of the id."]
    back: Annotated[bool, "Whether another collector runs; otherwise the collector ended."]


class EndChangeDocument(JobFields):
    """The job ended."""

    schema: Annotated[Literal["tfprof.follow/1"], "The format and its version."]
    event: Annotated[Literal["end"], "The kind of change."]
    job: Annotated[str, "The id of the job, as `uid`."]
    median_ns: Annotated[float | None, "The median time of a step of the main kind, ns; null without steps."]


ChangeDocument = (
    JobChangeDocument | StepsChangeDocument | WarningChangeDocument | CollectorChangeDocument | EndChangeDocument
)


def change_document(change: JobChange) -> ChangeDocument:
    """Return a change of a followed job: its kind, the job, and the details."""
    row = change.row
    if change.line is not None:
        return _steps(change, change.line)
    if change.event is not None:
        return _warning(change, change.event)
    if change.kind == "collector":
        return {
            "schema": "tfprof.follow/1",
            "event": "collector",
            "job": row.uid,
            "id": row.id,
            "back": change.back,
        }
    if change.kind == "end":
        return {
            "schema": "tfprof.follow/1",
            "event": "end",
            "job": row.uid,
            **fields(JobFields, row),
            "median_ns": change.median_ns,
        }
    return {"schema": "tfprof.follow/1", "event": "job", "job": row.uid, **fields(JobFields, row)}


def _steps(change: JobChange, line: StepLine) -> StepsChangeDocument:
    row = change.row
    return fields(StepsChangeDocument, line, schema="tfprof.follow/1", event="steps", job=row.uid, id=row.id)


def _warning(change: JobChange, event: EventSummary) -> WarningChangeDocument:
    return {
        "schema": "tfprof.follow/1",
        "event": "warning",
        "job": change.row.uid,
        "id": change.row.id,
        **fields(EventDocument, event),
    }
