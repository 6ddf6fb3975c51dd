"""One sentence on whether a job had the CPUs that it needed."""

from ..advice.host_sentence import host_sentence
from ..store.protocols import JobReader
from .evidence import gather


def host_verdict(job: JobReader) -> str | None:
    """Return what other processes used while the job's steps ran, None if it is unknown.

    The figures are those of the advice.
    """
    return host_sentence(gather(job))
