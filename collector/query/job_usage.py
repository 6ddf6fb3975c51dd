"""Reads the resource use of a job's processes, and of its host while the job ran."""

from dataclasses import dataclass

from ..store.columns import pc
from ..store.protocols import JobReader
from ..summaries.host import Series, cpus, host_series, job_series, samples_between
from .surroundings import host_samples


@dataclass(frozen=True, slots=True)
class JobUsage:
    """The resource use of a job and of its host.

    ``cpus``: number of CPUs of the host, None if unknown. ``samples``: number of the job's samples.
    ``host_series`` is empty without samples of the host. ``last_ns``:
    real time of the job's last sample, 0 without any. ``damage``: why those cannot be read,
    empty if they can.
    """

    job: JobReader
    host: str
    cpus: int | None
    samples: int
    job_series: tuple[Series, ...]
    host_series: tuple[Series, ...]
    damage: str
    since_ns: int
    last_ns: int


def job_usage(job: JobReader, since_ns: int = 0) -> JobUsage:
    """Return the resource use of ``job`` and of its host; one snapshot of the job is read.

    ``since_ns``: only from then on (real time), 0 for the whole job.
    """
    return job.on_one_snapshot(lambda snapshot: _job_usage(snapshot, since_ns))


def _job_usage(job: JobReader, since_ns: int) -> JobUsage:
    all_samples = job.table("samples")
    last_ns = pc.max(all_samples["t_ns"]).as_py() or 0
    samples = samples_between(all_samples, since_ns, last_ns) if since_ns <= last_ns else all_samples.slice(0, 0)
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
        since_ns,
        last_ns,
    )
