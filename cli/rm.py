"""`tfprof rm`: removes jobs from a store."""

import sys
import time
from collections.abc import Sequence

import click

from ..collector.errors import UsageError
from ..collector.numbers import size
from ..collector.query.listing import JobFilter
from ..collector.query.removing import Removable, ended_jobs, remove_jobs, selected_jobs
from ..collector.render import jobs_text
from ..collector.render.jobs_text import Listing
from ..collector.store.reader import LocalStore
from ..commands.streams import note
from .command import jobs_argument, json_option, names_option, print_json, print_lines, store_option, width
from .values import MOMENT


@click.command()
@jobs_argument
@click.option("--all", "all_ended", is_flag=True, help="All jobs that have ended.")
@names_option
@click.option(
    "--older-than",
    "ended_before_ns",
    metavar="TIME",
    type=MOMENT,
    help="Jobs that ended before TIME: 30d (that long ago), or 2026-01-31.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@store_option
def rm(
    jobs: tuple[str, ...],
    store: str,
    names: tuple[str, ...],
    ended_before_ns: int | None,
    *,
    all_ended: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove ended JOBs with all their data; the collector may run meanwhile.

    A running job is refused. On a terminal the command asks first.
    """
    has_criteria = all_ended or bool(names) or ended_before_ns is not None
    if jobs and has_criteria:
        raise UsageError("a JOB and --all, --name or --older-than exclude each other")
    if not jobs and not has_criteria:
        raise UsageError("no JOB given: the start of a job's id, its name, or `last`; or --all, --name, --older-than")
    local_store, now_ns = LocalStore(store), time.time_ns()
    removable = (
        selected_jobs(local_store, jobs, now_ns)
        if jobs
        else ended_jobs(
            local_store, JobFilter(names=names), now_ns if ended_before_ns is None else ended_before_ns, now_ns
        )
    )
    if not removable:
        note("no ended job matches: nothing was removed")
    elif not yes and not _confirmed(removable, now_ns, are_arguments=bool(jobs)):
        note("nothing was removed")
        removable = []
    remove_jobs(local_store, removable)
    if as_json:
        print_json(
            {"removed": [job.listed_job.row.uid for job in removable], "bytes": sum(job.size for job in removable)}
        )
    elif removable:
        print_lines([f"removed {_summary(removable)}"])


def _summary(removable: Sequence[Removable]) -> str:
    return f"{len(removable)} job{'s' * (len(removable) > 1)}, {size(sum(job.size for job in removable))}"


def _confirmed(removable: Sequence[Removable], now_ns: int, *, are_arguments: bool) -> bool:
    """Ask for confirmation on the terminal and return the answer.

    Without a terminal, return True if the jobs are arguments of the command
    (``are_arguments``), and raise UsageError if options select them.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if are_arguments:
            return True
        raise UsageError(f"{_summary(removable)} would be removed: without a terminal this needs --yes")
    listings = [Listing(job.listed_job.row, job.listed_job.usage, job.listed_job.tags) for job in removable]
    for line in jobs_text.lines(listings, now_ns, width()):
        click.echo(line, err=True)
    return click.confirm(f"remove {_summary(removable)}?", err=True)
