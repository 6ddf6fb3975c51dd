"""Reads the trees of a job's spans and activities."""

from dataclasses import dataclass

from ..store.catalog import RUNNING
from ..store.protocols import JobReader
from ..summaries.activities import ActivityNode, activity_tree
from ..summaries.jobs import functions_of
from ..summaries.spans import SpanNode, span_tree


@dataclass(frozen=True, slots=True)
class JobSpans:
    """The spans and the activities of a job as the lines of two trees, parents first."""

    job: JobReader
    tree: tuple[SpanNode, ...]
    activities: tuple[ActivityNode, ...]


def job_spans(job: JobReader) -> JobSpans:
    """Return the spans and activities of ``job``."""
    spans, names = job.table("spans"), functions_of(job.info)
    tree = span_tree(spans, names, live=job.info.state == RUNNING)
    return JobSpans(job, tuple(tree), tuple(activity_tree(spans, names)))
