"""`tfprof steps`: step times of a job."""

from typing import Final

import click

from ..collector.errors import UsageError
from ..collector.query.documents import steps_document
from ..collector.query.explanations import missed_steps_note
from ..collector.render import steps_text
from ..collector.store.protocols import JobReader
from ..collector.store.reader import open_reader
from ..collector.summaries.events import events
from ..collector.summaries.jobs import counts_of, functions_of
from ..collector.summaries.steps import steps as summarize
from ..commands.streams import note
from .command import job_argument, json_option, print_json, print_lines, store_option, why_no_spans, width
from .values import WHOLE

#: Default number of listed steps.
LISTED_STEPS: Final = 10


@click.command()
@job_argument
@click.option("--last", type=WHOLE, metavar="N", help="List the last N steps (10).")
@click.option("--all", "list_all", is_flag=True, help="List every step.")
@json_option
@store_option
def steps(job: str, store: str, as_json: bool, last: int | None, list_all: bool) -> None:
    """Print step times of JOB: percentiles, the cost of tracing, and a list of the last steps.

    Traced steps have their own percentiles. Steps shorter than 1 ms may be sampled: a timed step
    represents all steps since the previous timed one. Steps that were recorded together are listed
    with their mean. Events of the job are printed, too.
    """
    if list_all and last is not None:
        raise UsageError("--last and --all exclude each other")
    job_reader = open_reader(store).job(job)
    limit = None if list_all else LISTED_STEPS if last is None else last
    if as_json:
        document = steps_document(job_reader, limit)
        print_json(document)
        entry_count = document["entries"]
    else:
        entry_count = _print(job_reader, limit)
    if not entry_count:
        note(why_no_spans(job_reader, "step"))


def _print(job: JobReader, limit: int | None) -> int:
    """Print the steps and events of ``job``; return the number of entries."""
    step_times = summarize(job.table("spans"), limit, functions_of(job.info))
    job_events = events(job.table("events"))
    if step_times.entry_count or job_events:
        print_lines(steps_text.lines(step_times, counts_of(job.info), job_events, width()))
    if text := missed_steps_note(job):
        note(text)
    return step_times.entry_count
