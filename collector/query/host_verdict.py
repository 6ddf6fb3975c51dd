"""One sentence on whether a job had the CPUs that it needed."""

from ..advice.cpu_use import cpu_use
from ..advice.host_sentence import host_sentence, use_sentence
from ..store.protocols import JobReader
from .evidence import gather


def host_verdict(job: JobReader, since_ns: int = 0) -> str | None:
    """Return what other processes used while the job's steps ran, None if it is unknown.

    The figures are those of the advice. ``since_ns``: only from then on (real time). The time for
    which the job waited for a CPU is then left out, since it is only known for the whole job.
    """
    evidence = gather(job)
    if not since_ns:
        return host_sentence(evidence)
    load = tuple(interval for interval in evidence.load if interval.start_ns >= since_ns)
    return use_sentence(cpu_use(load, evidence.timed_steps))
