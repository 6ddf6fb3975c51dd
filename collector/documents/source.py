"""The source lines of a job's ops."""

from typing import Annotated, Literal, TypedDict

from ..query.job_source import JobSource, SourceFile, SourceLine


class SourceLineDocument(TypedDict):
    """A line; its figures are null if its ops took no time."""

    number: Annotated[int, "The number of the line in its file, from 1."]
    text: Annotated[
        str | None, "The line, with ? for control characters, at most 300 characters; null if unknown (`no_text`)."
    ]
    time_ns: Annotated[float | None, "The time of its ops and of their gradients in a step, ns."]
    share: Annotated[float | None, "The share of the time of all ops."]
    runs: Annotated[float | None, "The number of executions of these ops in a step."]
    ops: Annotated[int | None, "The number of these ops that took time."]
    layer: Annotated[str | None, "The layer with most of the time; empty without one."]


class SourceFileDocument(TypedDict):
    """A file: the lines with time, and those around them."""

    path: Annotated[str, "The path, as the job recorded it."]
    no_text: Annotated[str | None, "Why the text of the lines is unknown; null if it is known."]
    lines: Annotated[list[SourceLineDocument], "The lines, in the order of the file."]


class SourceDocument(TypedDict):
    """The user's own lines that made the ops of a job, as code."""

    schema: Annotated[Literal["tfprof.source/1"], "The format and its version."]
    job: Annotated[str, "The id of the job."]
    traces: Annotated[int, "The number of traced steps that are covered."]
    total_ns: Annotated[float, "The time of all ops in a step, ns."]
    left_out: Annotated[int, "The number of lines with time that are not listed; at most 500 lines are."]
    files: Annotated[list[SourceFileDocument], "The files, the one with the most expensive line first."]


def source_document(source: JobSource) -> SourceDocument:
    """Return the source lines of a job."""
    return {
        "schema": "tfprof.source/1",
        "job": source.job.info.hex,
        "traces": source.traces,
        "total_ns": source.total_ns,
        "left_out": source.left_out,
        "files": [_file(file, source.total_ns) for file in source.files],
    }


def _file(file: SourceFile, total_ns: float) -> SourceFileDocument:
    return {
        "path": file.path,
        "no_text": file.no_text or None,
        "lines": [_line(line, total_ns) for line in file.lines],
    }


def _line(line: SourceLine, total_ns: float) -> SourceLineDocument:
    cost = line.cost
    return {
        "number": line.number,
        "text": line.text,
        "time_ns": cost.time_ns if cost else None,
        "share": cost.time_ns / total_ns if cost and total_ns else None,
        "runs": cost.runs if cost else None,
        "ops": cost.ops if cost else None,
        "layer": cost.layer if cost else None,
    }
