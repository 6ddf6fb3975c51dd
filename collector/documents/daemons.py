"""The state of agent and collector, from their status files."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from ..daemon_status import DaemonStatus
from .fields import fields

Status = Mapping[str, Any]


class ReasonDocument(TypedDict):
    """Why something failed."""

    slug: Annotated[str | None, "The kind of error (docs/errors.md); null if it has none."]
    text: Annotated[str, "The error as a sentence."]


class DaemonFields(TypedDict):
    """The state of a daemon; what its status file does not say is null."""

    alive: Annotated[bool, "Whether the daemon runs; otherwise the rest is its last state."]
    failed: Annotated[bool, "Whether it could not start; `last_error` has the reason."]
    pid: Annotated[int | None, "Its process id."]
    started_ns: Annotated[int | None, "When it started, ns since 1970."]
    written_ns: Annotated[int | None, "When it wrote this state, ns since 1970."]
    version: Annotated[str | None, "Its version of tfprof."]
    store: Annotated[str | None, "The folder of the store."]
    rss_bytes: Annotated[int | None, "Its resident memory, bytes."]
    cpu_s: Annotated[float | None, "Its CPU time, s."]
    last_error: Annotated[ReasonDocument | None, "Its last error, or why it did not start."]


class OpenJobDocument(TypedDict):
    """A job that an agent reads."""

    uid: Annotated[str, "The id of the job."]
    pid: Annotated[int | None, "Its process id."]
    state: Annotated[str | None, "What the agent does with the job."]
    records: Annotated[int | None, "The number of records that the job has written."]
    acked: Annotated[int | None, "The number of these that the collector has stored."]
    lag_bytes: Annotated[int | None, "The size of the records that the agent has not read yet, bytes."]
    dropped_records: Annotated[int | None, "The number of records that the job dropped."]
    dropped_traces: Annotated[int | None, "The number of traced steps that the job dropped."]
    dropped_spans: Annotated[int | None, "The number of span entries that the job dropped."]
    spooled: Annotated[bool, "Whether the rest of these is on disk (`spool_bytes`)."]
    refused: Annotated[int | None, "The number of messages that the collector refused."]
    error: Annotated[str | None, "Why the job is given up."]


class RefusalDocument(TypedDict):
    """A reason for which a process was refused."""

    launch: Annotated[int, "The number of the launch, 0 if it is unknown."]
    pid: Annotated[int, "The process id."]
    slug: Annotated[str, "The kind of error (docs/errors.md)."]
    text: Annotated[str, "The error as a sentence."]
    times: Annotated[int, "How often."]


class AgentDocument(DaemonFields):
    """The state of the agent, which reads the jobs of a host."""

    stopped: Annotated[bool | None, "Whether it is stopping, or was stopped."]
    waiting_channels: Annotated[int | None, "The number of channels that wait to be opened."]
    collector: Annotated[int | None, "The process id of its collector."]
    jobs: Annotated[dict[str, OpenJobDocument], "The open jobs by id."]
    lag_bytes: Annotated[int | None, "The size of the records that it has not read yet, bytes."]
    refused: Annotated[int | None, "The number of refusals."]
    refusals: Annotated[list[RefusalDocument], "The last refusals, the latest last."]
    samples_dropped: Annotated[int | None, "The number of samples that it dropped."]
    spool_bytes: Annotated[int | None, "The size of the data on disk that waits for a collector, bytes."]
    spool_oldest_ns: Annotated[int | None, "Since when the oldest of it waits, ns since 1970; null without any."]
    spool_failure: Annotated[ReasonDocument | None, "Why data is not written there now."]
    stall: Annotated[ReasonDocument | None, "Why no data is stored now."]


class CopyDocument(TypedDict):
    """The copy of a store that its collector keeps in ClickHouse."""

    to: Annotated[str, "Where it is (URL)."]
    copied_ns: Annotated[int | None, "The time of what is there, ns since 1970; null before the first copy."]
    rows: Annotated[int, "The number of rows that were copied since the copying process started."]
    failed: Annotated[int, "The number of jobs that cannot be copied."]
    error: Annotated[ReasonDocument | None, "Why not everything is copied."]


class CollectorDocument(DaemonFields):
    """The state of the collector, which writes the store."""

    service: Annotated[bool, "Whether it is a service (tfprof serve), which does not end when idle."]
    decoder: Annotated[str | None, "The decoder of traces: walker, or the slower python."]
    jobs: Annotated[int | None, "The number of open jobs."]
    rows: Annotated[int | None, "The number of stored rows."]
    rows_per_s: Annotated[float | None, "Rows a second since the status before."]
    messages: Annotated[int | None, "The number of received messages."]
    bytes: Annotated[int | None, "Their size, bytes."]
    lag_s: Annotated[float | None, "How long the oldest message waits to be stored, s."]
    stalls: Annotated[int | None, "How often writing was not possible."]
    stalled: Annotated[ReasonDocument | None, "Why writing is not possible now."]
    refusals: Annotated[int | None, "The number of refused messages."]
    last_refusal: Annotated[str | None, "Why the last one was refused."]
    failures: Annotated[int | None, "The number of internal errors."]
    first_failure: Annotated[str | None, "The traceback of the first one."]
    copy: Annotated[CopyDocument | None, "The copy of the store in ClickHouse (setting copy-to); null without one."]
    lost_samples: Annotated[int | None, "The number of samples that were not stored."]
    quarantined: Annotated[dict[str, str], "The jobs that are put aside, by id, with the reason."]


class StatusDocument(TypedDict):
    """The last state of agent and collector of a store."""

    schema: Annotated[Literal["tfprof.status/1"], "The format and its version."]
    store: Annotated[str, "The folder of the store."]
    runtime: Annotated[str, "The runtime folder, with logs and status files."]
    agent: Annotated[AgentDocument, "The agent."]
    collector: Annotated[CollectorDocument, "The collector."]


def status_document(status: DaemonStatus) -> StatusDocument:
    """Return the last status of each daemon of a store."""
    return {
        "schema": "tfprof.status/1",
        "store": status.store,
        "runtime": status.runtime,
        "agent": _agent(status.agent),
        "collector": _collector(status.collector),
    }


def _reason(error: object) -> ReasonDocument | None:
    """Return an error, which a status file has as an object, or as text only."""
    if isinstance(error, Mapping):
        slug = error.get("slug")
        return {"slug": None if slug is None else str(slug), "text": str(error.get("text"))}
    return {"slug": None, "text": str(error)} if error else None


def _agent(status: Status) -> AgentDocument:
    jobs, refusals = status.get("jobs"), status.get("refusals")
    return fields(
        AgentDocument,
        status,
        **_states(status),
        jobs={uid: _open_job(uid, job) for uid, job in jobs.items()} if isinstance(jobs, Mapping) else {},
        refusals=[fields(RefusalDocument, one) for one in refusals] if isinstance(refusals, list) else [],
        spool_failure=_reason(status.get("spool_failure")),
        stall=_reason(status.get("stall")),
    )


def _states(status: Status) -> dict[str, object]:
    return {
        "alive": bool(status.get("alive")),
        "failed": bool(status.get("failed")),
        "last_error": _reason(status.get("last_error")),
    }


def _open_job(uid: str, job: Status) -> OpenJobDocument:
    return fields(OpenJobDocument, job, uid=uid, spooled=bool(job.get("spooled")))


def _copy(copy: object) -> CopyDocument | None:
    if not isinstance(copy, Mapping):
        return None
    return {
        "to": str(copy.get("to")),
        "copied_ns": copy.get("copied_ns"),
        "rows": copy.get("rows", 0),
        "failed": copy.get("failed", 0),
        "error": _reason(copy.get("error")),
    }


def _collector(status: Status) -> CollectorDocument:
    quarantined = status.get("quarantined")
    return fields(
        CollectorDocument,
        status,
        **_states(status),
        service=bool(status.get("service")),
        stalled=_reason(status.get("stalled")),
        last_refusal=status.get("last_refusal") or None,
        first_failure=status.get("first_failure") or None,
        copy=_copy(status.get("copy")),
        quarantined=dict(quarantined) if isinstance(quarantined, Mapping) else {},
    )
