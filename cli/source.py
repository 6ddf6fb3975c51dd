"""`tfprof source`: the source lines of a job's ops, as code."""

import click

from ..collector.documents.source import source_document
from ..collector.query.explanations import untraced_reason
from ..collector.query.job_source import job_source
from ..collector.render import source_text
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import job_argument, json_option, print_json, store_option, width


@click.command()
@job_argument
@json_option
@store_option
def source(job: str, store: str, as_json: bool) -> None:
    """Print the source lines that made the ops of JOB, as code with the time of each line.

    The time of a line is the time of its ops and of their gradients, per step. Unlike in `tfprof
    code`, it does not include what the line calls. The text is read from files on this host that
    were not changed since the job began.
    """
    answer = job_source(open_reader(store).job(job))
    if as_json:
        print_json(source_document(answer))
    else:
        print_lines(source_text.lines(answer, width()))
    if not answer.files:
        note(untraced_reason(answer.job) if not answer.traces else "no op has a line of Python")
