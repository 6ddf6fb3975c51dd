"""`tfprof spans`: the phases of a job."""

import click

from ..collector.documents.spans import spans_document
from ..collector.numbers import date_and_time
from ..collector.query.job_steps import job_spans
from ..collector.render import spans_text
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import check_top, job_argument, json_option, print_json, store_option, why_no_spans, width
from .selection_options import since_option, top_option


@click.command()
@job_argument
@since_option("phases and activities that ended")
@top_option("longest lines of each table only (all)")
@json_option
@store_option
def spans(job: str, store: str, as_json: bool, since_ns: int, top: int) -> None:
    """Print the phases of JOB: fits, evaluations, predictions and session runs.

    Fits are shown with their epochs and batches. Below are the activities: what else the job's
    Python did, such as waits for input, checkpoints, callbacks and garbage collections.
    """
    check_top(top, as_json=as_json)
    job_reader = open_reader(store).job(job)
    answer = job_spans(job_reader, since_ns)
    if as_json:
        print_json(spans_document(answer))
    else:
        if since_ns and (answer.tree or answer.activities):
            print_lines([f"only what ended since {date_and_time(since_ns)}"])
        print_lines(spans_text.lines(answer.tree, width(), top) if answer.tree else ())
        print_lines(["", *spans_text.activity_lines(answer.activities, width(), top)] if answer.activities else ())
    if not answer.tree and not answer.activities:
        since = f"no span ended since {date_and_time(since_ns)}"
        note(since if answer.stored else why_no_spans(job_reader, "span"))
