"""Resource use of a job's processes and of its host."""

from typing import Annotated, Literal, TypedDict

from ..query.job_usage import JobUsage
from .series import SeriesDocument, series_documents


class HostDocument(TypedDict):
    """CPU, memory and I/O of a job's processes, and of its host while the job ran."""

    schema: Annotated[Literal["tfprof.host/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    host: Annotated[str, "The host of the job."]
    cpus: Annotated[int | None, "The number of CPUs of the host; null if it is unknown."]
    since_ns: Annotated[int | None, "Only samples from then on (--since), ns since 1970; null for all."]
    samples: Annotated[int, "The number of samples, one a second."]
    job_series: Annotated[dict[str, SeriesDocument], "Resource use of the job's processes, by name."]
    host_series: Annotated[dict[str, SeriesDocument], "Resource use of the host, by name."]
    damaged: Annotated[list[str], "Why the samples of the host cannot be read."]


def host_document(usage: JobUsage) -> HostDocument:
    """Return the resource use of a job and of its host."""
    return {
        "schema": "tfprof.host/1",
        "job": usage.job.info.hex,
        "host": usage.host,
        "cpus": usage.cpus,
        "since_ns": usage.since_ns or None,
        "samples": usage.samples,
        "job_series": series_documents(usage.job_series),
        "host_series": series_documents(usage.host_series),
        "damaged": [usage.damage] if usage.damage else [],
    }
