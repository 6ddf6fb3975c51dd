"""`tfprof steps`: step times of a job."""

from typing import Final

import click

from ..collector.documents.steps import steps_document
from ..collector.errors import UsageError
from ..collector.query.job_steps import StepSelection, job_steps
from ..collector.render import steps_text
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import job_argument, json_option, print_json, store_option, why_no_spans, width
from .selection_options import since_option, steps_option, top_option
from .values import WHOLE

#: Default number of listed steps.
LISTED_STEPS: Final = 10


@click.command()
@job_argument
@click.option("--last", type=WHOLE, metavar="N", help="List the last N steps (10).")
@click.option("--all", "list_all", is_flag=True, help="List every step.")
@top_option("longest steps instead of the last ones")
@steps_option("steps")
@since_option("steps that began")
@json_option
@store_option
def steps(
    job: str,
    store: str,
    as_json: bool,
    last: int | None,
    list_all: bool,
    top: int,
    steps: tuple[int, int] | None,
    since_ns: int,
) -> None:
    """Print step times of JOB: percentiles, the cost of tracing, and a list of the last steps.

    Traced steps have their own percentiles. Steps shorter than 1 ms may be sampled: a timed step
    represents all steps since the previous timed one. Steps that were recorded together are listed
    with their mean. Events of the job are printed, too.
    """
    if list_all + (last is not None) + bool(top) > 1:
        raise UsageError("--last, --all and --top exclude each other")
    listed = None if list_all else top or (LISTED_STEPS if last is None else last)
    job_reader = open_reader(store).job(job)
    answer = job_steps(job_reader, StepSelection(listed, bool(top), steps, since_ns))
    if as_json:
        print_json(steps_document(answer))
    else:
        if answer.steps.entry_count or answer.events:
            print_lines(steps_text.lines(answer, width()))
        if answer.note and answer.steps.entry_count:
            note(answer.note)
    if not answer.steps.entry_count:
        note(why_no_spans(job_reader, "step"))
