"""`tfprof profile-proto`: exports a job as files of the TF profiler."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..collector.errors import UsageError
from ..collector.export.files import write
from ..collector.exporters.job_files import JOB_FILES
from ..collector.store.reader import open_reader
from ..collector.tfviews.parity import COMPAT
from .command import job_argument, store_option
from .selection import TfprofCommand, kind_option, step_range
from .values import NON_EMPTY

F = TypeVar("F", bound=Callable[..., Any])


def _file_options(command: F) -> F:
    """Add the option of each exporter of jobs."""
    for row in reversed(JOB_FILES):
        command = click.option(*row.flags, row.name, metavar="FILE", type=NON_EMPTY, help=row.help)(command)
    return command


@click.command("profile-proto", cls=TfprofCommand)
@job_argument
@_file_options
@kind_option("all, or with --steps the main kind")
@click.option("--steps", metavar="A-B", callback=step_range, help="Only traced steps from A to B.")
@click.option(
    "--compat",
    type=click.Choice(COMPAT),
    default=COMPAT[0],
    metavar="VERSION",
    help="1.15: record the output that each input comes from, as TensorFlow 1.15 does.",
)
@store_option
def profile_proto(
    job: str,
    store: str,
    kinds: tuple[int, ...] | None,
    steps: tuple[int, int] | None,
    compat: str,
    **files: str | None,
) -> None:
    """Write JOB as a file that TensorFlow's own tools read.

    The tools are tfprof --profile_path, ProfilerFromFile and profiler-ui.
    """
    if not any(files.values()):
        file_options = ", or ".join(f"{row.flags[0]} FILE" for row in JOB_FILES)
        raise UsageError(f"nothing to write: give {file_options}")
    job_reader = open_reader(store).job(job)
    for row in reversed(JOB_FILES):
        path = files[row.name]
        if path:
            write(path, b"".join(row.data(job_reader, steps, compat, kinds)))
