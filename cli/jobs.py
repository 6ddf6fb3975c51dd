"""`tfprof jobs`: the jobs of a store."""

import time

import click

from ..collector.query.listing import ALL_JOBS, STATES, JobFilter, listed_jobs
from ..collector.render import jobs_text
from ..collector.render.jobs_text import Listing
from ..collector.store.protocols import StoreReader
from ..collector.store.reader import open_reader
from ..commands.streams import note
from .command import json_option, names_option, print_json, print_lines, store_option, width
from .values import MOMENT, Words


@click.command()
@click.option(
    "--state",
    "states",
    metavar="STATE",
    type=Words(STATES),
    multiple=True,
    help=f"Only jobs in this state, or in any of several (STATE,STATE): {', '.join(STATES)}.",
)
@names_option
@click.option(
    "--since",
    metavar="TIME",
    type=MOMENT,
    default=0,
    help="Only jobs that started after TIME: 30m, 2h, 3d (that long ago), 14:30, 2026-01-31, or '2026-01-31 14:30'.",
)
@json_option
@store_option
def jobs(store: str, as_json: bool, states: tuple[tuple[str, ...], ...], names: tuple[str, ...], since: int) -> None:
    """List running and ended jobs, in order of their start.

    TIME/STEP is the mean over all steps of the main kind, CPU the mean number of busy cores, MEMORY
    the maximum.
    """
    reader, now_ns = open_reader(store), time.time_ns()
    job_filter = JobFilter(sum(states, ()), names, since)
    if as_json:
        from ..collector.query.documents import jobs_document  # noqa: PLC0415  # needed for --json only

        document = jobs_document(reader, job_filter)
        print_json(document)
        shown_count, damaged = len(document["jobs"]), document["damaged"]
    else:
        rows = [
            Listing(listed_job.row, listed_job.usage, listed_job.tags, listed_job.traced)
            for listed_job in listed_jobs(reader, now_ns, job_filter)
        ]
        print_lines(jobs_text.lines(rows, now_ns, width()) if rows else ())
        shown_count, damaged = len(rows), reader.damaged()
    if not shown_count:
        note(_no_jobs_text(reader, job_filter))
    for error in damaged:
        note(str(error))


def _no_jobs_text(store: StoreReader, job_filter: JobFilter) -> str:
    job_count = len(store.jobs())
    if job_filter != ALL_JOBS and job_count:
        return f"none of {job_count} jobs matches the state, name and time"
    return f"no jobs in {store.path} yet: tfprof-run python train.py profiles one"
