"""`tfprof show`: the summary of one job."""

import time

import click

from ..collector.documents.overview import show_document
from ..collector.query.overview import overview
from ..collector.render import overview_text
from ..collector.render.overview_text import OP_ROWS_MAX
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import check_top, job_argument, json_option, print_json, store_lines, store_option, width, without_gc
from .selection_options import top_option


@click.command()
@job_argument
@top_option(f"op types with the most time ({OP_ROWS_MAX})")
@json_option
@store_option
@without_gc()
def show(job: str, store: str, as_json: bool, top: int) -> None:
    """Show JOB on one screen: phases, step times, resource use, top ops, warnings, advice.

    Step times are those of untraced steps. Op times are medians over the traced steps of the job's
    main kind, as in `tfprof op`.
    """
    check_top(top, as_json=as_json)
    job_overview = overview(open_reader(store).job(job))
    if as_json:
        print_json(show_document(job_overview))
        return
    lines = overview_text.lines(job_overview, time.time_ns(), width(), top or OP_ROWS_MAX)
    print_lines([*lines, *store_lines(store)])
    if job_overview.ops.why:
        note(job_overview.ops.why)
