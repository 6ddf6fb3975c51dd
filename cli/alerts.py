"""`tfprof alerts`: alerts about jobs."""

from collections.abc import Sequence

import click

from ..collector.alerts.alert import SLOWER
from ..collector.query.alerts import JobAlert, alerts_of
from ..collector.query.documents import alerts_document
from ..collector.query.selection import choose, ids_of
from ..collector.render.alerts_text import Block, lines
from ..collector.store.reader import open_reader
from ..commands.streams import note
from .command import json_option, print_json, print_lines, store_option, width
from .job_names import complete_jobs
from .values import NON_EMPTY, WHOLE


def _block(one: JobAlert, id_: str) -> Block:
    identity = one.job.info.identity
    host = f" on {identity['host']}" if identity.get("host") else ""
    return Block(
        one.alert.found_ns,
        f"{one.job.info.name} {id_}{host}".strip(),
        one.text,
        one.alert.slug,
        one.ops,
        _note(one),
    )


def _note(one: JobAlert) -> str:
    if one.alert.slug != SLOWER or one.ops:
        return ""
    if not one.since:
        return "No step was traced since the change, so the slower ops are unknown."
    if not one.before:
        return "No step was traced before the change, so the slower ops are unknown."
    return "The ops of traced steps are not slower: the time is spent between ops, or outside of TensorFlow."


@click.command()
@click.argument("jobs", nargs=-1, type=NON_EMPTY, metavar="[JOB]...", shell_complete=complete_jobs)
@click.option("--last", type=WHOLE, metavar="N", help="Only the last N alerts.")
@json_option
@store_option
def alerts(jobs: Sequence[str], store: str, as_json: bool, last: int | None) -> None:
    """Show alerts about JOB (all jobs): slower steps, spikes, stalls, growing memory, losses.

    The collector raises alerts while jobs run. An alert contains its numbers. An alert about slower
    steps lists the ops that take longer than before.
    """
    opened = open_reader(store)
    found = alerts_of(choose(opened, jobs) if jobs else opened.jobs())
    shown = found if last is None else found[len(found) - min(last, len(found)) :]
    if as_json:
        print_json(alerts_document(shown))
    else:
        ids = ids_of([one.job for one in shown])
        print_lines(lines([_block(one, ids[one.job.info.hex]) for one in shown], width()))
    if not found:
        note("no alerts")
