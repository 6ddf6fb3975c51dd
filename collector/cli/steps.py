"""`tfprof steps`: step times of a job."""

import click
from tfprof.collector.cli.command import (
    job_argument,
    json_option,
    note,
    print_json,
    print_lines,
    store_option,
    unspanned,
    width,
)
from tfprof.collector.render import steps_text
from tfprof.collector.store.reader import Store
from tfprof.collector.views.events import events
from tfprof.collector.views.jobs import counts_of
from tfprof.collector.views.steps import steps as fold


@click.command()
@job_argument
@click.option("--last", type=click.IntRange(min=0), default=10, metavar="N", help="List the last N steps (10).")
@click.option("--all", "everything", is_flag=True, help="List every step.")
@json_option
@store_option
def steps(job: str, store: str, as_json: bool, last: int, everything: bool) -> None:
    """Step times of JOB: percentiles of the untraced steps, the traced ones apart, and the last steps one by one.

    Of steps shorter than 1 ms one in so many is timed, and stands for those since the last one; what is recorded of several
    at a time is listed with their mean. What befell the job besides is told, too.
    """
    chosen = Store(store).job(job)
    found = fold(chosen.table("spans"), None if everything else last)
    counts = counts_of(chosen.info)
    befallen = events(chosen.table("events"))
    if as_json:
        groups = [
            {"kind": one.kind, "call": one.call, "key": one.key, "count": one.count, "failed": one.failed}
            | {"setup": one.setup, "untraced": one.untraced, "traced": one.traced, "traced_cost_ns": one.cost_ns}
            for one in found.groups
        ]
        told = {"groups": groups, "entries": found.rows, "steps": found.steps, "events": befallen}
        print_json({"job": chosen.info.hex, "counts": counts, "timed": found.timed, **told})
    elif found.rows or befallen:
        print_lines(steps_text.lines(found, counts, befallen, width()))
    if not found.rows:
        note(unspanned(chosen, "step"))
