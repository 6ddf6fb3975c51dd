"""Whether a process or a command can be profiled, and why not."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from ..errors import FormatError


class FindingDocument(TypedDict):
    """The result of one check."""

    part: Annotated[str, "The part that was checked."]
    verdict: Annotated[str, "ok, note or no."]
    text: Annotated[str, "What was found, a sentence."]


class DoctorDocument(TypedDict):
    """Whether a process or a command can be profiled."""

    schema: Annotated[Literal["tfprof.doctor/1"], "The format and its version."]
    host: Annotated[str, "The host on which it was checked."]
    subject: Annotated[list[str], "The process id, or the words of the command."]
    verdict: Annotated[str, "ok, note or no: the worst verdict of a finding."]
    findings: Annotated[list[FindingDocument], "The findings in order of the checks."]


def doctor_document(
    host: str, subject: Sequence[str], verdict: str, findings: Iterable[tuple[str, str, str]]
) -> DoctorDocument:
    """Return the findings, each a part, a verdict and a text, about a process or a command."""
    return {
        "schema": "tfprof.doctor/1",
        "host": host,
        "subject": list(subject),
        "verdict": verdict,
        "findings": [{"part": part, "verdict": each, "text": text} for part, each, text in findings],
    }


def findings_of(document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return part, verdict and text of another host's findings; FormatError if it has none."""
    rows = document.get("findings")
    if document.get("schema") != "tfprof.doctor/1" or not isinstance(rows, list) or not rows:
        raise FormatError("its answer has no findings")
    findings = [tuple(row.get(name) for name in ("part", "verdict", "text")) for row in rows if isinstance(row, dict)]
    if len(findings) != len(rows) or not all(isinstance(value, str) for finding in findings for value in finding):
        raise FormatError("its answer has a finding without its fields")
    return [(str(part), str(verdict), str(text)) for part, verdict, text in findings]
