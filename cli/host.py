"""`tfprof host`: resource use of a job's processes and of its host."""

import click

from ..collector.documents.host import host_document
from ..collector.numbers import date_and_time
from ..collector.query.evidence import host_verdict
from ..collector.query.job_usage import JobUsage, job_usage
from ..collector.render import colors, host_text
from ..collector.render.wrapping import wrapped
from ..collector.store.catalog import IMPORTED
from ..collector.store.opening import open_reader
from ..commands.streams import note, print_lines
from .command import job_argument, json_option, print_json, store_option, width
from .selection_options import since_option


@click.command()
@job_argument
@since_option("what was used")
@json_option
@store_option
def host(job: str, store: str, as_json: bool, since_ns: int) -> None:
    """Print CPU, memory and I/O of JOB's processes, and of its host while the job ran.

    There is one sample per second.
    """
    usage = job_usage(open_reader(store).job(job), since_ns)
    if as_json:
        print_json(host_document(usage))
    else:
        _print(usage)
    if usage.damage:
        note(usage.damage)
    if not usage.samples and usage.last_ns:
        note(f"no samples since {date_and_time(since_ns)}: the last one is of {date_and_time(usage.last_ns)}")
    elif not usage.samples:
        is_imported = usage.job.info.state == IMPORTED
        reason = "was imported" if is_imported else "ended before the first, or the agent has not sent one yet"
        note(f"no samples of this job: it {reason}")


def _print(usage: JobUsage) -> None:
    """Print the samples of a job and of its host."""
    info = usage.job.info
    verdict = host_verdict(usage.job, usage.since_ns) if usage.samples and usage.host_series else None
    since = f", since {date_and_time(usage.since_ns)}" if usage.since_ns else ""
    if verdict:
        print_lines([colors.paint("verdict", text) for text in wrapped(f"Verdict: {verdict}.", width())])
    if usage.samples:
        title = f"job {info.name or info.hex}, {usage.samples} samples, one a second{since}"
        print_lines(host_text.lines(title, usage.job_series, width()))
    if usage.samples and usage.cpus is not None:
        print_lines(
            host_text.lines(
                f"host {usage.host}, {usage.cpus} CPUs, while the job ran{since}", usage.host_series, width()
            )
        )
