"""`tfprof host`: resource use of a job's processes and of its host."""

import click

from ..collector.query.documents import host_document, host_name
from ..collector.query.surroundings import host_samples
from ..collector.render import host_text
from ..collector.store.protocols import JobReader
from ..collector.store.reader import open_reader
from ..collector.summaries.host import cpus, host_series, job_series
from ..commands.streams import note
from .command import job_argument, json_option, print_json, print_lines, store_option, width


@click.command()
@job_argument
@json_option
@store_option
def host(job: str, store: str, as_json: bool) -> None:
    """Print CPU, memory and I/O of JOB's processes, and of its host while the job ran.

    There is one sample per second.
    """
    job_reader = open_reader(store).job(job)
    if as_json:
        document = host_document(job_reader)
        print_json(document)
        sample_count = document["samples"]
    else:
        sample_count = _print(job_reader)
    if not sample_count:
        note("no samples of this job: the agent has not sent one yet, or the job ended before the first")


def _print(job: JobReader) -> int:
    """Print the samples of ``job`` and of its host; return the number of the job's samples."""
    samples = job.table("samples")
    host_rows = host_samples(job, samples)
    cores = cpus(host_rows)
    if samples.num_rows:
        title = f"job {job.info.name or job.info.hex}, {samples.num_rows} samples, one a second"
        print_lines(host_text.lines(title, job_series(samples, cores), width()))
    if samples.num_rows and host_rows.num_rows:
        title = f"host {host_name(job)}, {cores} CPUs, while the job ran"
        print_lines(host_text.lines(title, host_series(host_rows), width()))
    return samples.num_rows
