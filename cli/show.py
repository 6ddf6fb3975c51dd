"""`tfprof show`: the summary of one job."""

import time

import click

from ..collector.query.documents import show_document
from ..collector.query.overview import Overview, overview
from ..collector.render import overview_text
from ..collector.store.reader import open_reader
from ..commands.streams import note
from .command import job_argument, json_option, print_json, print_lines, store_option, width


@click.command()
@job_argument
@json_option
@store_option
def show(job: str, store: str, as_json: bool) -> None:
    """Show JOB on one screen: phases, step times, resource use, top ops, warnings, advice.

    Step times are those of untraced steps. Op times are those of the median traced step of the
    job's main kind.
    """
    job_overview = overview(open_reader(store), job)
    if as_json:
        print_json(show_document(job_overview))
        return
    print_lines(overview_text.lines(shown_parts(job_overview), time.time_ns(), width()))
    if job_overview.ops.why:
        note(job_overview.ops.why)


def shown_parts(job_overview: Overview) -> overview_text.OverviewParts:
    """Return the parts of a job's summary that are shown."""
    return overview_text.OverviewParts(
        row=job_overview.row,
        tags=job_overview.tags,
        stages=job_overview.stages,
        steps=[(steps.kind, steps.count, steps.spread, steps.traced, steps.curve) for steps in job_overview.steps],
        ops=job_overview.ops.ops,
        cpus=job_overview.cpus,
        job_series=job_overview.job_series,
        host_series=job_overview.host_series,
        alerts=job_overview.alerts,
        warnings=job_overview.warnings,
        notes=job_overview.notes,
        advice=[(advice.title, advice.text) for advice in job_overview.advice],
    )
