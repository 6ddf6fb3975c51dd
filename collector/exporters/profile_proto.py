"""The format `profile-proto`: a job as TensorFlow's ProfileProto."""

from collections.abc import Iterator

from ..export.profile_proto import pieces as pieces_of
from ..query.recorded_job import RecordedJob, StepRange
from ..store.protocols import JobReader
from .request import Request


def job_pieces(
    job: JobReader, steps: StepRange | None = None, compat: str = "2.21", kinds: tuple[int, ...] | None = None
) -> Iterator[bytes]:
    """Yield a serialized ProfileProto of ``job`` in pieces.

    Arguments and errors are those of `RecordedJob.read`. ``compat``: 1.15 records which output an
    input comes from. Newer versions take the first one, unless the job was imported with others.
    """
    return pieces_of(RecordedJob.read(job, steps, compat, kinds))


def pieces(request: Request) -> Iterator[bytes]:
    """Return the bytes of the file."""
    selection = request.selection
    return job_pieces(selection.jobs[0], selection.steps, selection.parity.compat, selection.kinds)
