"""The verdict on a job, and the order of its findings."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ..numbers import percent
from .report import Advice, Checker, Report

#: Verdicts without a finding: if checkers had data, and if none had.
_FINE: Final = "no cause of lost time was found"
_UNKNOWN: Final = "unknown, since there is too little data"


#: Rank of findings about the host, and the part of their saving by which they are compared: while
#: others use the CPUs, everything takes longer, also what the job does without need.
_HOST_RANK: Final = 2
_HOST_WEIGHT: Final = 0.5


class Finding(NamedTuple):
    """A report, and its checker."""

    checker: Checker
    report: Report


def findings(advice: Sequence[Advice]) -> list[Finding]:
    """Return all reports: the one to act on first, then by the time that can be saved.

    Some findings come first whatever they cost, since others may be their effects: those of
    checkers of a lower rank, unless the host is their cause. Reports without a remedy are
    information, and come last.
    """
    all_findings = [Finding(checker, report) for checker, reports, _ in advice for report in reports]
    return sorted(
        all_findings,
        key=lambda finding: (
            not finding.report.remedy,
            _HOST_RANK if finding.report.of_host else finding.checker.rank,
            -finding.report.saving * (_HOST_WEIGHT if finding.report.of_host else 1.0),
        ),
    )


def verdict(advice: Sequence[Advice]) -> str:
    """Return one sentence about the finding to act on first, or that there is none."""
    first = next(iter(findings(advice)), None)
    if first is not None and first.report.remedy:
        saving = first.report.saving
        return (first.report.verdict or first.checker.verdict) + (
            f", up to {percent(saving)} of the time" if saving > 0 else ""
        )
    if all(missing for _, _, missing in advice):
        return _UNKNOWN
    dominant = next((report.verdict for _, report in findings(advice) if report.verdict), "")
    return f"{_FINE}; {dominant}" if dominant else _FINE


def fine(advice: Sequence[Advice]) -> list[str]:
    """Return the titles of the checkers that had data and no finding."""
    return [checker.title for checker, reports, missing in advice if not missing and not reports]


def without_data(advice: Sequence[Advice]) -> list[tuple[str, list[str]]]:
    """Return (what is missing, the titles of the checkers that lack it)."""
    pairs = sorted((missing, checker.title) for checker, reports, missing in advice if missing and not reports)
    return [(missing, [title for _, title in group]) for missing, group in groupby(pairs, key=lambda pair: pair[0])]
