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

    Step times cover untraced steps. Ops have their times in the median traced step of the job's
    main kind.
    """
    found = overview(open_reader(store), job)
    if as_json:
        print_json(show_document(found))
        return
    print_lines(overview_text.lines(shown(found), time.time_ns(), width()))
    if found.ops.why:
        note(found.ops.why)


def shown(found: Overview) -> overview_text.OverviewParts:
    """Return the parts of a job's summary that are shown."""
    return overview_text.OverviewParts(
        row=found.row,
        tags=found.tags,
        stages=found.stages,
        steps=[(one.kind, one.count, one.spread, one.traced, one.curve) for one in found.steps],
        ops=found.ops.ops,
        cpus=found.cpus,
        job_series=found.job_series,
        host_series=found.host_series,
        alerts=found.alerts,
        warnings=found.warnings,
        notes=found.notes,
        advice=[(one.title, one.text) for one in found.advice],
    )
