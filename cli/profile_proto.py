"""`tfprof profile-proto`: a job as the files of TensorFlow's own tfprof."""

import click

from ..collector.errors import UsageError
from ..collector.export import files
from ..collector.store.reader import Store
from ..collector.tfviews.parity import COMPAT
from .about import TfprofCommand, kind_option, step_range
from .command import job_argument, store_option
from .values import GIVEN


@click.command("profile-proto", cls=TfprofCommand)
@job_argument
@click.option(
    "-o", "--output", "file", metavar="FILE", type=GIVEN, help="Where the profile is written to (ProfileProto)."
)
@click.option(
    "--op-log",
    metavar="FILE",
    type=GIVEN,
    help="Where an op log is written to (OpLogProto): operations, types, Python stacks.",
)
@kind_option
@click.option("--steps", metavar="A-B", callback=step_range, help="Only traced steps from A to B.")
@click.option(
    "--compat",
    type=click.Choice(COMPAT),
    default=COMPAT[0],
    metavar="VERSION",
    help="1.15: tell which output of a node an input is of, as that TensorFlow does.",
)
@store_option
def profile_proto(
    job: str,
    store: str,
    file: str | None,
    op_log: str | None,
    kinds: tuple[int, ...] | None,
    steps: tuple[int, int] | None,
    compat: str,
) -> None:
    """Write JOB as a file that TensorFlow's own tools read: tfprof --profile_path, ProfilerFromFile, profiler-ui."""
    if not file and not op_log:
        raise UsageError("nothing to write: give -o FILE, or --op-log FILE")
    chosen = Store(store).job(job)
    if op_log:
        from ..collector.profile_files import op_log as message  # noqa: PLC0415  # for those who ask for it

        files.write(op_log, message(chosen).SerializeToString(deterministic=True))
    if file:
        from ..collector.profile_files import pieces  # noqa: PLC0415  # likewise

        files.write(file, b"".join(pieces(chosen, steps, compat, kinds)))
