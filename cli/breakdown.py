"""`tfprof breakdown`: the parts of a job's steps."""

import click

from ..collector.documents.breakdown import breakdown_document
from ..collector.query.breakdown import breakdowns
from ..collector.query.job_selection import ids_of
from ..collector.render import breakdown_text
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import job_argument, json_option, print_json, store_lines, store_option, why_no_spans, width
from .selection_options import kind_option, since_option, step_kinds, steps_option


@click.command()
@job_argument
@kind_option("the main kind")
@steps_option("steps")
@since_option("steps that began")
@json_option
@store_option
def breakdown(
    job: str, store: str, as_json: bool, kinds: str | None, steps: tuple[int, int] | None, since_ns: int
) -> None:
    """Show where the time of a step of JOB goes, from its start to the start of the next one.

    The parts are means, so that they add up. The inside of a step is cut where it was traced, the
    time between steps in all timed steps.
    """
    reader = open_reader(store).job(job)
    answer = breakdowns(reader, step_kinds(kinds), steps, since_ns)
    if as_json:
        print_json(breakdown_document(answer))
    else:
        job_id = ids_of([answer.job])[answer.job.info.hex]
        for index, parts in enumerate(answer.breakdowns):
            print_lines(["", ""] if index else [])
            print_lines(breakdown_text.lines(parts, job_id, width()))
        print_lines(store_lines(store) if answer.breakdowns else [])
    if not answer.breakdowns:
        note(why_no_spans(answer.job, "step"))
