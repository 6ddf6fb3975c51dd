"""`tfprof host`: what a job's processes and its host did."""

import click

from ..collector.query.documents import host_document, host_name
from ..collector.query.surroundings import host_samples
from ..collector.render import host_text
from ..collector.store.reader import Store
from ..collector.summaries.host import cpus, host_series, job_series
from .command import job_argument, json_option, note, print_json, print_lines, store_option, width


@click.command()
@job_argument
@json_option
@store_option
def host(job: str, store: str, as_json: bool) -> None:
    """CPU, memory and I/O of JOB's processes, and of its host while the job ran; one sample a second."""
    chosen = Store(store).job(job)
    samples = chosen.table("samples")
    around = host_samples(chosen, samples)
    cores = cpus(around)
    if as_json:
        print_json(host_document(chosen))
    elif samples.num_rows:
        title = f"job {chosen.info.name or chosen.info.hex}, {samples.num_rows} samples, one a second"
        print_lines(host_text.lines(title, job_series(samples, cores), width()))
        if around.num_rows:
            title = f"host {host_name(chosen)}, {cores} CPUs, while the job ran"
            print_lines(host_text.lines(title, host_series(around), width()))
    if not samples.num_rows:
        note("no samples of this job: the agent has not sent one, or the job was shorter than its start")
