"""`tfprof host`: what a job's processes and its host did."""

from collections.abc import Sequence

import click

from ..collector.query.surroundings import host_samples
from ..collector.render import host_text
from ..collector.store.reader import Store
from ..collector.summaries.host import Series, cpus, host_series, job_series
from .command import job_argument, json_option, note, print_json, print_lines, store_option, width


def _documents(series: Sequence[Series]) -> dict[str, dict[str, object]]:
    return {one.name: {"mean": one.mean, "max": one.most, "values": one.values} for one in series}


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
    own, others = job_series(samples, cores), host_series(around)
    name = str(chosen.info.identity.get("host") or "unknown host")
    if as_json:
        print_json(
            {"job": chosen.info.hex, "host": name, "cpus": cores, "samples": samples.num_rows}
            | {"job_series": _documents(own), "host_series": _documents(others)}
        )
    elif samples.num_rows:
        title = f"job {chosen.info.name or chosen.info.hex}, {samples.num_rows} samples, one a second"
        print_lines(host_text.lines(title, own, width()))
        if around.num_rows:
            print_lines(host_text.lines(f"host {name}, {cores} CPUs, while the job ran", others, width()))
    if not samples.num_rows:
        note("no samples of this job: the agent has not sent one, or the job was shorter than its start")
