"""The spans and activities of a job."""

from typing import Annotated, Literal, TypedDict

from ..query.job_steps import JobSpans
from .fields import fields


class SpanDocument(TypedDict):
    """One line of the tree: one span, or all spans of a kind below the line before."""

    depth: Annotated[int, "The depth in the tree, 0 for the outermost spans; a line follows its parent."]
    kind: Annotated[str, "The kind of span: fit, epoch, batch, run, …."]
    label: Annotated[str, "The number of the span, or what distinguishes the call."]
    count: Annotated[int, "The number of spans that have ended."]
    total_ns: Annotated[int, "Their total time, ns."]
    min_ns: Annotated[int, "The shortest time, ns."]
    max_ns: Annotated[int, "The longest time, ns."]
    mean_ns: Annotated[float | None, "The mean time, ns; null if no span has ended."]
    start_ns: Annotated[int | None, "When the first span started, ns since 1970; null if it has not ended."]
    running: Annotated[bool, "Whether the span has not ended yet."]


class ActivityDocument(TypedDict):
    """One line of the tree: the activities of one name within one parent."""

    depth: Annotated[int, "The depth in the tree, 0 for the outermost activities; a line follows its parent."]
    category: Annotated[
        str,
        "The category: input, checkpoint, summary, callback, python_function, gc, tracing, first_run, mark, part,"
        " fetch or conversion.",
    ]
    name: Annotated[str, "The name: of a method, a class, a function, …."]
    count: Annotated[int, "The number of activities."]
    total_ns: Annotated[int, "Their total time, ns."]
    self_ns: Annotated[int, "The total time without the activities within them, ns."]
    median_ns: Annotated[float, "The median time, ns; short ones count with the mean of some of them."]
    max_ns: Annotated[int, "The longest time, ns."]
    share: Annotated[
        float,
        "The total time divided by the time from the job's first span to its last; threads may sum to more than 1.",
    ]
    in_steps_ns: Annotated[int, "The time within steps of the thread that runs most steps, ns."]
    outside_ns: Annotated[int, "The time in this thread outside of its steps, ns."]
    other_threads_ns: Annotated[int, "The time in other threads, ns."]
    start_ns: Annotated[int, "When the first one started, ns since 1970."]


class SpansDocument(TypedDict):
    """The trees of a job's spans and activities."""

    schema: Annotated[Literal["tfprof.spans/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    since_ns: Annotated[int | None, "Only spans that ended then or later (--since), ns since 1970; null for all."]
    spans: Annotated[list[SpanDocument], "The lines of the tree, parents first."]
    activities: Annotated[list[ActivityDocument], "What else the job's Python did, parents first, the longest first."]


def spans_document(job_spans: JobSpans) -> SpansDocument:
    """Return the trees of a job's spans and activities."""
    return {
        "schema": "tfprof.spans/1",
        "job": job_spans.job.info.hex,
        "since_ns": job_spans.since_ns or None,
        "spans": [fields(SpanDocument, node) for node in job_spans.tree],
        "activities": [fields(ActivityDocument, node) for node in job_spans.activities],
    }
