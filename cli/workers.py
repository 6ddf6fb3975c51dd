"""`tfprof workers`: the workers of a distributed job."""

import click

from ..collector.documents.workers import workers_document
from ..collector.query.workers import group_of
from ..collector.render import workers_text
from ..collector.store.opening import open_reader
from ..commands.streams import print_lines
from .command import job_argument, json_option, print_json, store_lines, store_option, width


@click.command()
@job_argument
@json_option
@store_option
def workers(job: str, store: str, as_json: bool) -> None:
    """Show the workers of a distributed job, the one that the others wait for first.

    JOB is any worker, or the name of the group. Workers are grouped by what TF_CONFIG, Slurm, MPI,
    torchrun or Horovod wrote into their environment before they started.
    """
    group = group_of(open_reader(store), job)
    if as_json:
        print_json(workers_document(group))
    else:
        print_lines([*workers_text.lines(group, width()), *store_lines(store)])
