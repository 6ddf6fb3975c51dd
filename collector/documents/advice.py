"""Advice about jobs."""

from collections.abc import Sequence
from math import inf
from typing import Annotated, Literal, TypedDict

from ..advice.report import Advice, Report
from ..advice.verdict import findings, verdict
from ..query.advising import JobAdvice
from .breakdown import StepPartsDocument, step_parts
from .fields import fields


class ReportDocument(TypedDict):
    """A finding of a checker."""

    text: Annotated[str, "The finding."]
    numbers: Annotated[dict[str, float | int | str | bool | None], "The numbers of the finding by name."]
    saving: Annotated[float | None, "The share of the time that the remedy saves at most; null if unknown."]
    line: Annotated[str | None, "The user's line; null if there is none."]
    todo: Annotated[str | None, "The remedy; null if there is none."]


class CheckerDocument(TypedDict):
    """A checker and its findings."""

    name: Annotated[str, "The name of the checker."]
    title: Annotated[str, "What it is called in texts."]
    slug: Annotated[str, "Its section in docs/advice.md."]
    missing: Annotated[str | None, "What the job lacks for this check; null if nothing."]
    reports: Annotated[list[ReportDocument], "The findings."]


class JobAdviceDocument(TypedDict):
    """The advice about one of several jobs."""

    job: Annotated[str, "The id of the job."]
    verdict: Annotated[str, "One sentence about the finding to act on first."]
    parts: Annotated[StepPartsDocument | None, "The parts of the steps of the main kind; null if none was timed."]
    checkers: Annotated[list[CheckerDocument], "All checkers; the first one has the finding to act on first."]


class AdviceDocument(JobAdviceDocument):
    """The advice about a job."""

    schema: Annotated[Literal["tfprof.advise/1"], "The format and its version."]


class AdviceOfJobsDocument(TypedDict):
    """The advice about several jobs."""

    schema: Annotated[Literal["tfprof.advise/1"], "The format and its version."]
    jobs: Annotated[list[JobAdviceDocument], "The advice about each job."]


AdviseDocument = AdviceDocument | AdviceOfJobsDocument


def advice_document(advice: Sequence[JobAdvice]) -> AdviseDocument:
    """Return the advice about one job, or about several."""
    documents = list(map(_job_advice, advice))
    if len(documents) == 1:
        return {"schema": "tfprof.advise/1", **documents[0]}
    return {"schema": "tfprof.advise/1", "jobs": documents}


def _job_advice(job_advice: JobAdvice) -> JobAdviceDocument:
    places = {checker: place for place, (checker, _) in reversed(list(enumerate(findings(job_advice.advice))))}
    checkers = sorted(job_advice.advice, key=lambda advice: places.get(advice.checker, inf))
    return {
        "job": job_advice.job.info.hex,
        "verdict": verdict(job_advice.advice),
        "parts": step_parts(parts) if (parts := job_advice.evidence.breakdown) else None,
        "checkers": list(map(_checker, checkers)),
    }


def _checker(advice: Advice) -> CheckerDocument:
    return fields(
        CheckerDocument, advice.checker, missing=advice.missing or None, reports=list(map(_report, advice.reports))
    )


def _report(report: Report) -> ReportDocument:
    return {
        "text": report.text,
        "numbers": dict(report.numbers),
        "saving": report.saving or None,
        "line": report.line or None,
        "todo": report.remedy or None,
    }
