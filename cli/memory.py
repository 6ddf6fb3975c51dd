"""`tfprof memory`: what a job holds in memory at the peak, and what grows."""

import click

from ..collector.documents.memory import memory_document
from ..collector.query.job_selection import ids_of
from ..collector.query.memory import job_memory
from ..collector.render import memory_text
from ..collector.store.opening import open_reader
from ..commands.streams import print_lines
from .command import job_argument, json_option, print_json, store_lines, store_option, width


@click.command()
@job_argument
@json_option
@store_option
def memory(job: str, store: str, as_json: bool) -> None:
    """Show what holds the memory of JOB at the peak, what grows from step to step, and host memory.

    The peak is the highest of all traced steps, by device and allocator.
    """
    answer = job_memory(open_reader(store).job(job))
    if as_json:
        print_json(memory_document(answer))
    else:
        job_id = ids_of([answer.job])[answer.job.info.hex]
        print_lines([*memory_text.lines(answer.use, job_id, width()), *store_lines(store)])
