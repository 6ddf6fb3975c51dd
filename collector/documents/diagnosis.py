"""Whether a process or a command can be profiled, and why not."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypedDict


class FindingDocument(TypedDict):
    """The result of one check."""

    part: Annotated[str, "The part that was checked."]
    verdict: Annotated[str, "ok, note or no."]
    text: Annotated[str, "What was found, a sentence."]


class DoctorDocument(TypedDict):
    """Whether a process or a command can be profiled."""

    schema: Annotated[Literal["tfprof.doctor/1"], "The format and its version."]
    subject: Annotated[list[str], "The process id, or the words of the command."]
    verdict: Annotated[str, "ok, note or no: the worst verdict of a finding."]
    findings: Annotated[list[FindingDocument], "The findings in order of the checks."]


def doctor_document(subject: Sequence[str], verdict: str, findings: Iterable[tuple[str, str, str]]) -> DoctorDocument:
    """Return the findings, each a part, a verdict and a text, about a process or a command."""
    return {
        "schema": "tfprof.doctor/1",
        "subject": list(subject),
        "verdict": verdict,
        "findings": [{"part": part, "verdict": each, "text": text} for part, each, text in findings],
    }
