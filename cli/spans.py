"""`tfprof spans`: the phases of a job."""

import click

from ..collector.render import spans_text
from ..collector.store.catalog import RUNNING
from ..collector.store.reader import open_reader
from ..collector.summaries.jobs import functions_of
from ..collector.summaries.spans import span_tree
from ..commands.streams import note
from .command import job_argument, json_option, print_json, print_lines, store_option, why_no_spans, width


@click.command()
@job_argument
@json_option
@store_option
def spans(job: str, store: str, as_json: bool) -> None:
    """Print the phases of JOB: fits, evaluations, predictions and session runs.

    Fits are shown with their epochs and batches.
    """
    job_reader = open_reader(store).job(job)
    if as_json:
        from ..collector.query.documents import spans_document  # noqa: PLC0415  # only --json needs it

        document = spans_document(job_reader)
        print_json(document)
        span_count = len(document["spans"])
    else:
        tree = span_tree(
            job_reader.table("spans"), functions_of(job_reader.info), live=job_reader.info.state == RUNNING
        )
        print_lines(spans_text.lines(tree, width()) if tree else ())
        span_count = len(tree)
    if not span_count:
        note(why_no_spans(job_reader, "span"))
