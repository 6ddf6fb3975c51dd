"""`tfprof jobs`: the jobs of a store."""

import time

import click

from ..collector.query.listing import ALL_JOBS, STATES, JobFilter, JobListing, ListedJob, UnreadableJob, job_listing
from ..collector.render import jobs_text
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import json_option, names_option, print_json, store_option, width
from .job_names import complete_jobs
from .selection_options import hosts_option
from .values import MOMENT, NON_EMPTY, Words


@click.command()
@click.argument("jobs", nargs=-1, type=NON_EMPTY, metavar="[JOB]...", shell_complete=complete_jobs)
@click.option(
    "--state",
    "states",
    metavar="STATE",
    type=Words(STATES),
    multiple=True,
    help=f"Only jobs in this state, or in any of several (STATE,STATE): {', '.join(STATES)}.",
)
@names_option
@hosts_option
@click.option(
    "--since",
    metavar="TIME",
    type=MOMENT,
    default=0,
    help="Only jobs that started after TIME: 30m, 2h, 3d (that long ago), 14:30, 2026-01-31, or '2026-01-31 14:30'.",
)
@json_option
@store_option
def jobs(
    store: str,
    as_json: bool,
    jobs: tuple[str, ...],
    states: tuple[tuple[str, ...], ...],
    names: tuple[str, ...],
    hosts: tuple[str, ...],
    since: int,
) -> None:
    """List running and ended jobs, in order of their start; with JOB, those that JOB may mean.

    MEAN STEP is the mean duration of all steps of the main kind, CPU the mean number of busy cores,
    MEMORY the maximum.
    """
    now_ns, job_filter = time.time_ns(), JobFilter(sum(states, ()), names, since, jobs, hosts)
    listing = job_listing(open_reader(store), now_ns, job_filter)
    rows: list[ListedJob | UnreadableJob] = [*listing.jobs, *listing.unreadable]
    if as_json:
        from ..collector.documents.jobs import jobs_document  # noqa: PLC0415  # needed for --json only

        print_json(jobs_document(listing))
    else:
        print_lines(jobs_text.lines(rows, now_ns, width()) if rows else ())
    if not rows:
        note(_no_jobs_text(listing, job_filter))
    for error in listing.damage:
        note(str(error))


def _no_jobs_text(listing: JobListing, job_filter: JobFilter) -> str:
    if job_filter != ALL_JOBS and listing.job_count:
        return f"none of {listing.job_count} jobs matches the names, hosts, state and time"
    return f"no jobs in {listing.store} yet: tfprof-run python train.py profiles one"
