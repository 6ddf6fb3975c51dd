"""The workers of a distributed job."""

from typing import Annotated, Literal, TypedDict

from ..query.workers import Group, Worker


class WorkerDocument(TypedDict):
    """A worker of a distributed job."""

    job: Annotated[str, "The id of its job, 16 hexadecimal digits."]
    id: Annotated[str, "The shortest unique start of `job`."]
    name: Annotated[str, "The worker in its group: the task of TF_CONFIG, or its rank."]
    host: Annotated[str, "The host of the process."]
    steps: Annotated[int, "The number of timed steps of the main kind."]
    period_ns: Annotated[float | None, "The mean time from step to step, ns; null without steps."]
    step_ns: Annotated[float | None, "The mean time of a step, ns; null without steps."]
    waits_ns: Annotated[float | None, "Its mean wait for other workers in a step, ns; null without traced steps."]
    behind_ns: Annotated[float | None, "How long the others wait for it in a step, ns; null if unknown."]
    late_ns: Annotated[float | None, "From the first worker's start of a step to its own, mean, ns; null if unknown."]
    last: Annotated[int, "The number of common steps that it started last."]
    common: Annotated[int, "The number of untraced steps that were timed one by one in all workers."]
    clock_offset_ns: Annotated[float | None, "The correction of its times, ns; null if its clock cannot be compared."]
    clock_error_ns: Annotated[float | None, "The error of that, ns; 0 on the host of the reference."]


class WorkersDocument(TypedDict):
    """The workers of a distributed job on one clock."""

    schema: Annotated[Literal["tfprof.workers/1"], "The format and its version."]
    group: Annotated[str, "The name of the group."]
    source: Annotated[
        str,
        "What the order is from: collectives, step starts, step to step (they do not wait for each other), or none.",
    ]
    workers: Annotated[list[WorkerDocument], "The workers, the one that is waited for first, or else the slowest."]


def workers_document(group: Group) -> WorkersDocument:
    """Return the workers of a distributed job."""
    return {
        "schema": "tfprof.workers/1",
        "group": group.name,
        "source": group.source,
        "workers": list(map(_worker, group.workers)),
    }


def _worker(worker: Worker) -> WorkerDocument:
    parts, compared = worker.breakdown, worker.comparison
    return {
        "job": worker.job.info.hex,
        "id": worker.id,
        "name": worker.name,
        "host": worker.job.info.host,
        "steps": parts.all_steps if parts else 0,
        "period_ns": parts.period_ns if parts else None,
        "step_ns": parts.step_ns if parts else None,
        "waits_ns": worker.waits_ns,
        "behind_ns": compared.behind_ns,
        "late_ns": compared.late_ns,
        "last": compared.last,
        "common": compared.common,
        "clock_offset_ns": compared.clock.offset_ns if compared.clock else None,
        "clock_error_ns": compared.clock.error_ns if compared.clock else None,
    }
