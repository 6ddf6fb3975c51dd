"""Jobs as the files of TensorFlow's own profiler: joins what query reads of a job with the exporters of jobs."""

from collections.abc import Iterator, Sequence
from typing import Any

from .export.op_log import op_log as op_log_of
from .export.profile_proto import pieces as pieces_of
from .proto.tfprof_log_pb2 import ProfileProto
from .query.recorded_job import OpLogNodes, RecordedJob, Steps
from .store.reader import Job


def profile_proto(
    job: Job, steps: Steps | None = None, compat: str = "2.21", kinds: Sequence[int] | None = None
) -> Any:
    """Return the ProfileProto of ``pieces``."""
    return ProfileProto.FromString(b"".join(pieces(job, steps, compat, kinds)))


def pieces(
    job: Job, steps: Steps | None = None, compat: str = "2.21", kinds: Sequence[int] | None = None
) -> Iterator[bytes]:
    """Yield a serialised ProfileProto of ``job`` bit by bit; arguments and errors are those of ``RecordedJob.of``.

    ``compat``: 1.15 tells which output an input is of, newer versions take the first.
    """
    return pieces_of(RecordedJob.of(job, steps, compat, kinds))


def op_log(job: Job) -> Any:
    """Return an OpLogProto of the nodes of ``job``, in the order of the graph; StoreError ``no-data`` where nothing was traced."""
    known = OpLogNodes.of(job)
    return op_log_of(known.names, known.nodes, literal=known.literal)
