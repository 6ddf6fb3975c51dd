"""`tfprof rm`: removes jobs from a store."""

import sys
import time
from collections.abc import Sequence

import click

from ..collector.documents.removal import rm_document
from ..collector.errors import UsageError
from ..collector.job_changes import service_of
from ..collector.numbers import size
from ..collector.query.listing import JobFilter, Removable, ended_jobs, remove_jobs, selected_jobs
from ..collector.render import jobs_text
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines, say
from .command import jobs_argument, json_option, names_option, print_json, store_option, width
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

    A running job is refused. The command asks first; without a terminal it needs --yes.
    """
    has_criteria = all_ended or bool(names) or ended_before_ns is not None
    if jobs and has_criteria:
        raise UsageError("a JOB and --all, --name or --older-than exclude each other")
    if not jobs and not has_criteria:
        raise UsageError("no JOB given: the start of a job's id, its name, or `last`; or --all, --name, --older-than")
    store_reader, now_ns = open_reader(store), time.time_ns()
    removable = (
        selected_jobs(store_reader, jobs, now_ns)
        if jobs
        else ended_jobs(
            store_reader, JobFilter(names=names), now_ns if ended_before_ns is None else ended_before_ns, now_ns
        )
    )
    if not removable:
        note("no ended job matches: nothing was removed")
    elif not yes and not _confirmed(removable, now_ns):
        note("nothing was removed")
        removable = []
    remove_jobs(store_reader, removable, (service_of(store) or store_reader).remove)
    if as_json:
        print_json(rm_document(removable))
    elif removable:
        print_lines([f"removed {_summary(removable)}"])


def _summary(removable: Sequence[Removable]) -> str:
    return f"{len(removable)} job{'s' * (len(removable) > 1)}, {size(sum(job.size for job in removable))}"


def _confirmed(removable: Sequence[Removable], now_ns: int) -> bool:
    """Ask for confirmation on the terminal and return the answer; UsageError without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{_summary(removable)} would be removed: without a terminal this needs --yes")
    say(*jobs_text.lines([job.listed_job for job in removable], now_ns, width()))
    return click.confirm(f"remove {_summary(removable)}?", err=True)
