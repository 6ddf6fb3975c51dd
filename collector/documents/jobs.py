"""The jobs of a store."""

from typing import Annotated, Literal, TypedDict

from ..query.listing import JobListing
from ..summaries.jobs import UNKNOWN_USAGE, JobRow, Usage
from .fields import fields


class JobFields(TypedDict):
    """What the store says about a job; texts are empty if unknown."""

    id: Annotated[str, "The shortest unique start of `uid`, as `tfprof jobs` shows it."]
    uid: Annotated[str, "The id of the job, 16 hexadecimal digits."]
    name: Annotated[str, "The name of the job, by default that of its script."]
    user: Annotated[str, "The user of the process."]
    host: Annotated[str, "The host of the process."]
    pid: Annotated[int | None, "The process id."]
    rank: Annotated[int | str | None, "The rank in a distributed job, null without one."]
    framework: Annotated[str, "tensorflow."]
    framework_version: Annotated[str, "The version of the framework."]
    steps: Annotated[int, "The number of successful steps of the main kind."]
    step_kind: Annotated[str, "The main kind of step: run, batch, function, …; empty without steps."]
    epochs: Annotated[int, "The number of epochs."]
    traced: Annotated[int, "The number of traced steps of all kinds."]
    lost: Annotated[int | None, "The number of lost records and span entries; null if it is unknown."]
    cost: Annotated[float | None, "The cost of profiling as a share of the time in steps; null without steps."]
    steps_ns: Annotated[int, "The time in steps without what tracing added, ns."]
    step_ns: Annotated[float | None, "The mean time of a step of the main kind, ns; null without steps."]
    state: Annotated[str, "running, exited, killed, ended, detached, lost, stale, imported or damaged."]
    phase: Annotated[str, "starting, running or ended."]
    status: Annotated[int | None, "The exit status of the process; null if it is unknown."]
    signal: Annotated[int | None, "The signal that ended the process; null without one."]
    started_ns: Annotated[int, "When the job started, ns since 1970; 0 if its file cannot be read."]
    ended_ns: Annotated[int | None, "When the job ended, ns since 1970; null while it runs."]
    duration_ns: Annotated[int, "The time from the start to the end, or until now, ns."]
    launch: Annotated[str, "The id of the launch, which the jobs of one command share."]
    trace: Annotated[str, "The trace policy of the job: which steps are traced."]
    odd_times: Annotated[int, "The number of executions in imported files with times that cannot be right."]


class JobDocument(JobFields):
    """A job of the list."""

    cpu_cores: Annotated[float | None, "The mean number of busy cores; null without samples."]
    memory_bytes: Annotated[int | None, "The most memory of any sample; null without samples."]
    tags: Annotated[list[str], "The tags of the job."]
    traced_of_kind: Annotated[int | None, "The number of stored traced steps of the main kind; null if unknown."]


class JobsDocument(TypedDict):
    """The jobs of a store, in the order in which they were opened."""

    schema: Annotated[Literal["tfprof.jobs/1"], "The format and its version."]
    store: Annotated[str, "The folder of the store."]
    jobs: Annotated[list[JobDocument], "The selected jobs; those whose file cannot be read come last."]
    damaged: Annotated[list[str], "Errors of damaged jobs."]


def jobs_document(listing: JobListing) -> JobsDocument:
    """Return the jobs of a listing, and the errors of damaged jobs."""
    return {
        "schema": "tfprof.jobs/1",
        "store": listing.store,
        "jobs": [
            *(_job(job.row, job.usage, job.tags, job.traced) for job in listing.jobs),
            *(_job(job.row, UNKNOWN_USAGE, (), None) for job in listing.unreadable),
        ],
        "damaged": list(map(str, listing.damage)),
    }


def _job(row: JobRow, usage: Usage, tags: tuple[str, ...], traced: int | None) -> JobDocument:
    return {
        **fields(JobFields, row),
        "cpu_cores": usage.cpu_cores,
        "memory_bytes": usage.memory_bytes,
        "tags": list(tags),
        "traced_of_kind": traced,
    }
