"""Reads the trees of a job's spans and activities."""

from dataclasses import dataclass

from ..store.catalog import RUNNING
from ..store.protocols import JobReader
from ..summaries.activities import ActivityNode, activity_tree
from ..summaries.jobs import functions_of
from ..summaries.spans import SpanNode, span_tree
from ..summaries.step_range import spans_since
from .run_names import run_names


@dataclass(frozen=True, slots=True)
class JobSpans:
    """The spans and the activities of a job as the lines of two trees, parents first.

    ``since_ns``: only those that ended then or later (real time), 0 for all. ``stored``: number of
    all stored spans and activities.
    """

    job: JobReader
    tree: tuple[SpanNode, ...]
    activities: tuple[ActivityNode, ...]
    since_ns: int
    stored: int


def job_spans(job: JobReader, since_ns: int = 0) -> JobSpans:
    """Return the spans and activities of ``job``; ``since_ns``: see JobSpans."""
    all_spans, names = job.table("spans"), functions_of(job.info)
    spans = spans_since(all_spans, since_ns)
    tree = span_tree(spans, names, run_names(job), live=job.info.state == RUNNING)
    return JobSpans(job, tuple(tree), tuple(activity_tree(spans, names)), since_ns, all_spans.num_rows)
