"""`tfprof export`: writes jobs as files for other programs."""

from collections.abc import Sequence
from typing import Any, Final

import click

from ..collector.errors import UsageError
from ..collector.exporters.request import Request
from ..collector.exporters.table import write_exports
from ..collector.render.table import Column, render
from ..collector.summaries.kinds import parse_steps
from ..commands.streams import note, print_lines
from ..formats.exports import DEFAULT_TABLE, FORMATS, TABLES
from .command import jobs_argument, pid_option, store_option, width
from .progress import progress
from .selection_options import device_option, hosts_option, kind_option, selection_from, since_option
from .values import NON_EMPTY

_ALL_STEPS: Final = "all"
_COLUMNS: Final = (
    Column("format"),
    Column("suffixes", min_width=14, preferred_width=24),
    Column("content", min_width=24, preferred_width=66),
    Column("read by", min_width=20, drop_priority=2),
)


def _steps(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Any:
    return value if value == _ALL_STEPS else parse_steps(value)


def _print_formats(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        rows = [(row.name, " ".join(row.suffixes), row.title, row.reader) for row in FORMATS.values()]
        print_lines(render(_COLUMNS, rows, width=width()))
        context.exit()


def _no_file_text(words: Sequence[str]) -> str:
    """Return what to type instead of a command line without -o."""
    text = "nothing to write: give -o FILE"
    if words and words[-1].endswith(tuple(suffix for row in FORMATS.values() for suffix in row.suffixes)):
        return f"{text}: did you mean -o {words[-1]}?"
    return f"{text}, such as -o run.json (tfprof export --list lists the formats)"


@click.command()
@jobs_argument
@click.option(
    "-o",
    "--output",
    "paths",
    metavar="FILE",
    type=NON_EMPTY,
    multiple=True,
    help="Write FILE; - is standard output. Several -o write several files.",
)
@hosts_option
@pid_option
@click.option(
    "--format",
    "format_name",
    metavar="FORMAT",
    type=click.Choice(list(FORMATS)),
    help="The format of all files, instead of the one that their names mean.",
)
@click.option(
    "--steps",
    metavar="A-B",
    callback=_steps,
    help="Only traced steps from A to B, or from A on (A-); all: no limit for timelines.",
)
@kind_option("the main kind of each job")
@since_option("traced steps that began")
@device_option
@click.option(
    "--table", type=click.Choice(TABLES), metavar="TABLE", help=f"For tables: {', '.join(TABLES)} ({DEFAULT_TABLE})."
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_formats,
    help="List the formats and exit.",
)
@store_option
def export(
    jobs: Sequence[str],
    store: str,
    paths: Sequence[str],
    hosts: Sequence[str],
    pids: Sequence[int],
    format_name: str | None,
    steps: Any,
    kinds: str | None,
    since_ns: int,
    device: str | None,
    table: str | None,
    force: bool,
) -> None:
    """Write JOBs as files that other programs open.

    The end of a file's name tells its format (--list). Timelines have the last traced steps, up to
    200,000 executions, unless --steps is given.
    """
    if not paths:
        raise UsageError(_no_file_text(jobs))
    selection = selection_from(
        jobs,
        store,
        hosts=hosts,
        pids=pids,
        kinds=kinds,
        steps=None if steps == _ALL_STEPS else steps,
        device=device,
        since_ns=since_ns,
    )
    request = Request(selection, steps == _ALL_STEPS, table)
    with progress() as watch:
        write_exports(request, paths, format_name, overwrite=force, watch=watch)
    for text in dict.fromkeys(request.notes):
        note(text)
