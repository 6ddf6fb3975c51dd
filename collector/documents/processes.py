"""The processes of this host, or of others, that have TensorFlow loaded."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, TypedDict

from ..errors import FormatError
from ..summaries.events import EventSummary
from .fields import fields


class SurveyedProcess(NamedTuple):
    """A process with TensorFlow, and its job, if it is profiled.

    ``state``: profiled, attachable, or refused with ``slug`` and ``reason``. ``has_tensorflow`` is
    None if that is unknown. ``job``: name of the job, None without one. ``warnings``: what cannot
    be recorded of the job.
    """

    host: str
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

    host: Annotated[str, "The host of the process."]
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


class UnansweredHost(TypedDict):
    """A host that was asked (`--host`) and did not answer."""

    host: Annotated[str, "The host, or the pattern that no connected host has."]
    slug: Annotated[str, "Why it did not answer (docs/errors.md)."]
    text: Annotated[str, "The same as a sentence."]


class PsDocument(TypedDict):
    """The processes that have TensorFlow loaded, or may have."""

    schema: Annotated[Literal["tfprof.ps/1"], "The format and its version."]
    processes: Annotated[list[ProcessDocument], "The processes in order of their host and id."]
    unanswered: Annotated[list[UnansweredHost], "The hosts that did not answer; empty without --host."]


def ps_document(processes: Iterable[SurveyedProcess], unanswered: Iterable[tuple[str, str, str]] = ()) -> PsDocument:
    """Return the processes; ``unanswered``: host, slug and text of hosts without an answer."""
    hosts: list[UnansweredHost] = [{"host": host, "slug": slug, "text": text} for host, slug, text in unanswered]
    return {"schema": "tfprof.ps/1", "processes": list(map(_process, processes)), "unanswered": hosts}


def processes_of(document: Mapping[str, Any], host: str) -> list[SurveyedProcess]:
    """Return the processes in the document of another host; FormatError unless it is one.

    Their jobs are those of its store, and are left out.
    """
    rows = document.get("processes")
    if document.get("schema") != "tfprof.ps/1" or not isinstance(rows, list):
        raise FormatError("its answer is no list of processes")
    return [_process_of(row, host) for row in rows]


def _process_of(row: Any, host: str) -> SurveyedProcess:
    if not isinstance(row, dict) or not all(isinstance(row.get(name), kind) for name, kind in _FIELDS.items()):
        raise FormatError("its answer has a process without its fields")
    if not all(isinstance(word, str) for word in row["command"]):
        raise FormatError("its answer has a command line that is none")
    values = {name: row[name] for name in _FIELDS}
    has_tensorflow = values.pop("tensorflow")
    return SurveyedProcess(host=host, has_tensorflow=has_tensorflow, job=None, warnings=[], **values)


#: The fields of a process that another host sends, and their types.
_FIELDS: Final[Mapping[str, Any]] = {
    "pid": int,
    "user": str,
    "age_s": int | float,
    "command": list,
    "state": str,
    "tensorflow": bool | None,
    "slug": str | None,
    "reason": str | None,
}


def _process(process: SurveyedProcess) -> ProcessDocument:
    return fields(
        ProcessDocument,
        process,
        age_s=round(process.age_s, 1),
        command=list(process.command),
        tensorflow=process.has_tensorflow,
        warnings=[event.line for event in process.warnings],
    )
