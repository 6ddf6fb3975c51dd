"""The processes of this host that have TensorFlow loaded."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple, TypedDict

from ..summaries.events import EventSummary


class SurveyedProcess(NamedTuple):
    """A process with TensorFlow, and its job, if it is profiled.

    ``state``: profiled, attachable, or refused with ``slug`` and ``reason``. ``has_tensorflow`` is
    None if that is unknown. ``job``: name of the job, None without one. ``warnings``: what cannot
    be recorded of the job.
    """

    pid: int
    user: str
    age_s: float
    command: Sequence[str]
    state: str
    has_tensorflow: bool | None
    slug: str | None
    reason: str | None
    job: str | None
    warnings: Sequence[EventSummary]


class ProcessDocument(TypedDict):
    """A process."""

    pid: Annotated[int, "The process id."]
    user: Annotated[str, "The user of the process."]
    age_s: Annotated[float, "The time since its start, s."]
    command: Annotated[list[str], "The words of its command line."]
    state: Annotated[str, "profiled, attachable or refused."]
    job: Annotated[str | None, "The name of its job; null if it has none in this store."]
    tensorflow: Annotated[bool | None, "Whether it has TensorFlow; null if that is unknown."]
    slug: Annotated[str | None, "Why it is refused (docs/errors.md); null otherwise."]
    reason: Annotated[str | None, "The same as a sentence; null otherwise."]
    warnings: Annotated[list[str], "What cannot be recorded of the job."]


class PsDocument(TypedDict):
    """The processes of this host that have TensorFlow loaded, or may have."""

    schema: Annotated[Literal["tfprof.ps/1"], "The format and its version."]
    processes: Annotated[list[ProcessDocument], "The processes in order of their id."]


def ps_document(processes: Iterable[SurveyedProcess]) -> PsDocument:
    """Return the processes."""
    return {"schema": "tfprof.ps/1", "processes": list(map(_process, processes))}


def _process(process: SurveyedProcess) -> ProcessDocument:
    return {
        "pid": process.pid,
        "user": process.user,
        "age_s": round(process.age_s, 1),
        "command": list(process.command),
        "state": process.state,
        "job": process.job,
        "tensorflow": process.has_tensorflow,
        "slug": process.slug,
        "reason": process.reason,
        "warnings": [event.line for event in process.warnings],
    }
