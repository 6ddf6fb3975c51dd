"""`tfprof jobs`: all jobs of a store."""

import time

import click

from ..collector.render import jobs_text
from ..collector.store.reader import Store
from ..collector.summaries.jobs import job_rows
from .command import json_option, note, print_json, print_lines, store_option, width


@click.command()
@json_option
@store_option
def jobs(store: str, as_json: bool) -> None:
    """All jobs, running and ended, the last one started last."""
    opened, now_ns = Store(store), time.time_ns()
    rows = job_rows([job.info for job in opened.jobs()], now_ns)
    damaged = opened.damaged()
    if as_json:
        from ..collector.query.documents import jobs_document  # noqa: PLC0415  # for those who ask for it

        print_json(jobs_document(opened))
    elif rows:
        print_lines(jobs_text.lines(rows, now_ns, width()))
    if not rows:
        note(f"no jobs in {opened.path} yet: tfprof-run python train.py makes one")
    for error in damaged:
        note(str(error))
