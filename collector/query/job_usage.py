"""Reads the resource use of a job's processes, and of its host while the job ran."""

from dataclasses import dataclass

from ..store.protocols import JobReader
from ..summaries.host import Series, cpus, host_series, job_series
from .surroundings import host_samples


@dataclass(frozen=True, slots=True)
class JobUsage:
    """The resource use of a job and of its host.

    ``cpus``: number of CPUs of the host, None if unknown. ``samples``: number of the job's samples.
    ``host_series`` is empty without samples of the host. ``damage``: why those cannot be read,
    empty if they can.
    """

    job: JobReader
    host: str
    cpus: int | None
    samples: int
    job_series: tuple[Series, ...]
    host_series: tuple[Series, ...]
    damage: str


def job_usage(job: JobReader) -> JobUsage:
    """Return the resource use of ``job`` and of its host; one snapshot of the job is read."""
    return job.on_one_snapshot(_job_usage)


def _job_usage(job: JobReader) -> JobUsage:
    samples = job.table("samples")
    host_rows, damage = host_samples(job, samples)
    cores = cpus(host_rows)
    return JobUsage(
        job,
        str(job.info.identity.get("host") or "unknown host"),
        cores,
        samples.num_rows,
        tuple(job_series(samples, cores)),
        tuple(host_series(host_rows)),
        damage,
    )
