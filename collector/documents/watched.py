"""The current state of all jobs of a store."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from ..query.watching import WatchedJob, WatchedStore
from .fields import fields
from .jobs import JobFields


class NowDocument(TypedDict):
    """The current steps and resource use of a job; null where it is unknown."""

    step_ns: Annotated[float | None, "The median step time of the last ten seconds or so, ns."]
    usual_ns: Annotated[float | None, "The median step time of up to ten minutes before, ns."]
    per_s: Annotated[float | None, "Steps a second."]
    last_ns: Annotated[int | None, "The end of the last step, ns since 1970."]
    trend: Annotated[list[float], "Median step times of up to 15 s each, ns, the latest last."]
    change: Annotated[float | None, "`step_ns` divided by `usual_ns`."]
    idle_ns: Annotated[int | None, "The time since the last step, if it is unusually long, ns."]
    cpu_cores: Annotated[float | None, "The number of busy cores."]
    memory_bytes: Annotated[int | None, "The resident memory, bytes."]
    read_bytes_per_s: Annotated[float | None, "Bytes read a second."]
    write_bytes_per_s: Annotated[float | None, "Bytes written a second."]


class WatchedJobDocument(JobFields):
    """A job, and how it is now."""

    now: Annotated[NowDocument, "Its current steps and resource use."]
    devices: Annotated[list[str], "The GPUs of the traced ops, or the CPUs without any GPU."]
    slow: Annotated[bool, "Whether its steps take longer than before, or have stopped."]
    alert: Annotated[str | None, "The slug of the latest alert of the last ten minutes; null without one."]


class WatchedHostDocument(TypedDict):
    """A host now."""

    name: Annotated[str, "The name of the host."]
    cpus: Annotated[int, "The number of its CPUs."]
    cpu_cores: Annotated[float | None, "The number of busy cores; null if it is unknown."]
    load_1m: Annotated[float, "The load of the last minute."]
    memory_used_bytes: Annotated[int, "The used memory, bytes."]
    memory_bytes: Annotated[int, "All memory, bytes."]


class TopDocument(TypedDict):
    """The current state of all jobs of a store."""

    schema: Annotated[Literal["tfprof.top/1"], "The format and its version."]
    store: Annotated[str, "The folder of the store."]
    at_ns: Annotated[int, "The time of these figures, ns since 1970."]
    hosts: Annotated[list[WatchedHostDocument], "The hosts."]
    damaged: Annotated[int, "The number of jobs that cannot be read."]
    jobs: Annotated[list[WatchedJobDocument], "The jobs in the order of --sort."]


def top_document(watched: WatchedStore, jobs: Sequence[WatchedJob]) -> TopDocument:
    """Return the current state of ``jobs`` and of the hosts of a store."""
    return {
        "schema": "tfprof.top/1",
        "store": watched.store,
        "at_ns": watched.at_ns,
        "hosts": [fields(WatchedHostDocument, host) for host in watched.hosts],
        "damaged": watched.damaged,
        "jobs": list(map(_job, jobs)),
    }


def _job(job: WatchedJob) -> WatchedJobDocument:
    return {
        **fields(JobFields, job.row),
        "now": fields(
            NowDocument,
            job.pace,
            trend=list(job.pace.trend),
            idle_ns=job.idle_ns,
            cpu_cores=job.usage.cpu_cores,
            memory_bytes=job.usage.memory_bytes,
            read_bytes_per_s=job.usage.read_bytes_per_s,
            write_bytes_per_s=job.usage.write_bytes_per_s,
        ),
        "devices": list(job.devices),
        "slow": job.is_slow,
        "alert": job.alert,
    }
