"""`tfprof profile-proto`: exports a job as files of the TF profiler."""

from typing import Any, Final

import click

from ..collector.errors import UsageError
from ..collector.exporters.request import Request
from ..collector.exporters.table import write_exports
from ..collector.query.job_selection import Selection
from ..collector.store.opening import open_reader
from ..collector.tfviews.parity import COMPAT, Parity
from .command import job_argument, store_option
from .selection_options import TfprofCommand, kind_option, step_kinds, steps_option
from .values import NON_EMPTY

_FILE: Final[dict[str, Any]] = {"metavar": "FILE", "type": NON_EMPTY}


@click.command("profile-proto", cls=TfprofCommand)
@job_argument
@click.option("-o", "--output", "profile", help="Where the profile is written to (ProfileProto).", **_FILE)
@click.option("--op-log", help="Where an op log is written to (OpLogProto): operations, types, Python stacks.", **_FILE)
@kind_option("all, or with --steps the main kind")
@steps_option("traced steps")
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
    kinds: str | None,
    steps: tuple[int, int] | None,
    compat: str,
    profile: str | None,
    op_log: str | None,
) -> None:
    """Write JOB as a file that TensorFlow's own tools read.

    The tools are tfprof --profile_path, ProfilerFromFile and profiler-ui.
    """
    if not profile and not op_log:
        raise UsageError("nothing to write: give -o FILE, or --op-log FILE")
    jobs = (open_reader(store).job(job),)
    if op_log:
        write_exports(Request(Selection(jobs)), [op_log], "op-log", overwrite=True)
    if profile:
        selection = Selection(jobs, steps, None, Parity(compat), step_kinds(kinds))
        write_exports(Request(selection), [profile], "profile-proto", overwrite=True)
