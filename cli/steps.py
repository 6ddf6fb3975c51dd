"""`tfprof steps`: step times of a job."""

from typing import Final

import click

from ..collector.errors import UsageError
from ..collector.query.documents import steps_document
from ..collector.query.explanations import missed
from ..collector.render import steps_text
from ..collector.store.reader import Store
from ..collector.summaries.events import events
from ..collector.summaries.jobs import counts_of, functions_of
from ..collector.summaries.steps import steps as fold
from .command import job_argument, json_option, note, print_json, print_lines, store_option, unspanned, width
from .values import WHOLE

#: Steps that are listed unless others are asked for.
LISTED: Final = 10


@click.command()
@job_argument
@click.option("--last", type=WHOLE, metavar="N", help="List the last N steps (10).")
@click.option("--all", "everything", is_flag=True, help="List every step.")
@json_option
@store_option
def steps(job: str, store: str, as_json: bool, last: int | None, everything: bool) -> None:
    """Step times of JOB: percentiles of the untraced steps, the traced ones apart, and the last steps one by one.

    Of steps shorter than 1 ms one in so many is timed, and stands for those since the last one; what is recorded of several
    at a time is listed with their mean. What befell the job besides is told, too.
    """
    if everything and last is not None:
        raise UsageError("--last and --all exclude each other")
    chosen = Store(store).job(job)
    listed = None if everything else LISTED if last is None else last
    found = fold(chosen.table("spans"), listed, functions_of(chosen.info))
    counts = counts_of(chosen.info)
    befallen = events(chosen.table("events"))
    if as_json:
        print_json(steps_document(chosen, listed))
    elif found.rows or befallen:
        print_lines(steps_text.lines(found, counts, befallen, width()))
    text = missed(chosen)
    if text and not as_json:
        note(text)
    if not found.rows:
        note(unspanned(chosen, "step"))
