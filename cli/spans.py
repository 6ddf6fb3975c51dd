"""`tfprof spans`: the phases of a job."""

import click

from ..collector.documents.spans import spans_document
from ..collector.query.job_spans import job_spans
from ..collector.render import spans_text
from ..collector.store.reader import open_reader
from ..commands.streams import note, print_lines
from .command import job_argument, json_option, print_json, store_option, why_no_spans, width


@click.command()
@job_argument
@json_option
@store_option
def spans(job: str, store: str, as_json: bool) -> None:
    """Print the phases of JOB: fits, evaluations, predictions and session runs.

    Fits are shown with their epochs and batches. Below are the activities: what else the job's
    Python did, such as waits for input, checkpoints, callbacks and garbage collections.
    """
    job_reader = open_reader(store).job(job)
    answer = job_spans(job_reader)
    if as_json:
        print_json(spans_document(answer))
    else:
        print_lines(spans_text.lines(answer.tree, width()) if answer.tree else ())
        print_lines(["", *spans_text.activity_lines(answer.activities, width())] if answer.activities else ())
    if not answer.tree and not answer.activities:
        note(why_no_spans(job_reader, "span"))
