"""`tfprof curves`: step times and resource use of a job over its whole run."""

import click

from ..collector.documents.curves import curves_document
from ..collector.query.curves import job_curves
from ..collector.render import curves_text
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import job_argument, json_option, print_json, store_option, why_no_spans, width


@click.command()
@job_argument
@json_option
@store_option
def curves(job: str, store: str, as_json: bool) -> None:
    """Print step times and resource use of JOB over its whole run, one curve on each line.

    Traced steps have a line of their own. With --json, a curve has up to 2,000 points, each with
    the minimum, mean and maximum of its part of the run.
    """
    found = job_curves(open_reader(store).job(job))
    if as_json:
        print_json(curves_document(found))
    elif found.steps or found.resources:
        print_lines(curves_text.lines(found, width()))
    if found.damage:
        note(found.damage)
    if not found.steps:
        note(why_no_spans(found.job, "step"))
