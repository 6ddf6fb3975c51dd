"""`tfprof top`: the current state of all jobs."""

import sys
import time

import click

from ..collector.documents.watched import top_document
from ..collector.query.store_watch import open_watch
from ..collector.query.watching import ORDERS, filtered_jobs, recent, sorted_jobs
from ..collector.render import top_text
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import json_option, print_json, store_option, width
from .values import NON_EMPTY


@click.command()
@click.option(
    "--sort", type=click.Choice(list(ORDERS)), default="slow", metavar="BY", help=f"Sort by {', '.join(ORDERS)} (slow)."
)
@click.option(
    "--filter",
    "filter_text",
    type=NON_EMPTY,
    metavar="TEXT",
    help="Only jobs with TEXT in their name, user, host, id or state.",
)
@click.option("--all", "everything", is_flag=True, help="Include jobs that ended more than ten minutes ago.")
@click.option("--once", is_flag=True, help="Print the table once; the default without a terminal.")
@json_option
@store_option
def top(store: str, sort: str, filter_text: str | None, *, everything: bool, once: bool, as_json: bool) -> None:
    """Show all jobs live.

    Each job has its step time and trend, steps a second, CPU, memory, I/O, device, cost and losses.
    CHANGE is the current step time divided by that of the minutes before. ALERT is the latest alert
    of the last ten minutes. At the top are jobs that became slower, stopped stepping or have an
    alert. Enter opens a job; the keys are shown at the bottom.
    """
    reader = open_reader(store)
    if not once and not as_json and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        from .top_screen import run  # noqa: PLC0415  # textual: only for the screen

        run(reader, sort, filter_text or "", shows_all=everything)
        return
    watched_store = open_watch(reader).update(time.time_ns())
    watched_store = watched_store if everything else recent(watched_store)
    jobs = sorted_jobs(filtered_jobs(watched_store.jobs, filter_text or ""), sort)
    if as_json:
        print_json(top_document(watched_store, jobs))
        return
    print_lines([top_text.fitted(top_text.summary(watched_store), width())])
    if jobs:
        table = top_text.lines(jobs, width())
        print_lines([table.head, *table.jobs])
    else:
        note(
            f"no job of {reader.address} runs or ended in the last ten minutes (--all shows all)"
            if filter_text is None
            else f"no job matches {filter_text!r}"
        )
