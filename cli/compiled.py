"""`tfprof compiled`: what XLA compiled in a job."""

import click

from ..collector.documents.compiled import compiled_document
from ..collector.query.compiled import compiled as compiled_of
from ..collector.query.job_selection import ids_of
from ..collector.render import compiled_text
from ..collector.render.compiled_text import OPS_MAX
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import check_top, job_argument, json_option, print_json, store_lines, store_option, width
from .selection_options import top_option


@click.command()
@job_argument
@click.argument("program", default="", metavar="[PROGRAM]")
@top_option(f"ops of a program ({OPS_MAX})")
@json_option
@store_option
def compiled(job: str, program: str, store: str, as_json: bool, top: int) -> None:
    """Show the programs that XLA compiled in JOB, with the ops that went into PROGRAM.

    Times are per traced step of the job's main kind. A job with one program shows its ops at once.
    """
    check_top(top, as_json=as_json)
    answer = compiled_of(open_reader(store).job(job), program)
    if as_json:
        print_json(compiled_document(answer))
    else:
        print_lines(compiled_text.lines(answer, ids_of([answer.job])[answer.job.info.hex], width(), top or OPS_MAX))
        print_lines(store_lines(store) if len(answer.programs) > 1 else [])
    if answer.why:
        note(answer.why)
