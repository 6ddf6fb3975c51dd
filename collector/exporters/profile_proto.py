"""`tfprof profile-proto`: a job as TensorFlow's ProfileProto."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..export.profile_proto import pieces as pieces_of
from ..proto.tfprof_log_pb2 import ProfileProto
from ..query.recorded_job import RecordedJob, StepRange
from ..store.protocols import JobReader


def profile_proto(
    job: JobReader, steps: StepRange | None = None, compat: str = "2.21", kinds: Sequence[int] | None = None
) -> Any:
    """Return the ProfileProto that `pieces` serializes."""
    return ProfileProto.FromString(b"".join(pieces(job, steps, compat, kinds)))


def pieces(
    job: JobReader, steps: StepRange | None = None, compat: str = "2.21", kinds: Sequence[int] | None = None
) -> Iterator[bytes]:
    """Yield a serialized ProfileProto of ``job`` in pieces.

    Arguments and errors are those of `RecordedJob.read`. ``compat``: 1.15 records which output an
    input comes from. Newer versions take the first one, unless the job was imported with others.
    """
    return pieces_of(RecordedJob.read(job, steps, compat, kinds))


data = pieces  # the bytes of the file
