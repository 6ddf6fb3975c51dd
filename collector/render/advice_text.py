"""Advice as text: findings with the user's line and the remedy.

Text in the TF profiler's layout lists every checker and is not wrapped.
"""

import re
from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Final

from ..advice.report import Advice, Report
from ..text import clean
from ..tfviews.parity import DEFAULT, Parity

#: The space between a number and its unit, at which a line is not broken.
_SPACE_BEFORE_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|[KMGT]?B\b|[nµm]?s\b))")
_LINE: Final = "  your line:  "
_REMEDY: Final = "  what to do: "


def lines(advice: Iterable[Advice], width: int | None = None, parity: Parity = DEFAULT) -> Iterator[str]:
    """Yield the lines of the advice, at most ``width`` wide."""
    if not parity.has_own_layout:
        yield from _tf_profiler_lines(advice)
        return
    titled_reports = [(checker.title, report) for checker, reports in advice for report in reports]
    for index, (title, report) in enumerate(titled_reports):
        if index:
            yield ""
        yield from _paragraphs(title, report, width)


def _paragraphs(title: str, report: Report, width: int | None) -> Iterator[str]:
    yield from _wrapped(f"{title}: ", report.text, width)
    if report.line:
        yield from _wrapped(_LINE, report.line, width)
    if report.remedy:
        yield from _wrapped(_REMEDY, report.remedy, width)


def _wrapped(label: str, text: str, width: int | None) -> list[str]:
    indent = " " * (len(label) if label in {_LINE, _REMEDY} else 2)
    paragraph = label + clean(text)
    if width is None:
        return [paragraph]
    lines = wrap(_SPACE_BEFORE_UNIT.sub("\u00a0", paragraph), width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _tf_profiler_lines(advice: Iterable[Advice]) -> Iterator[str]:
    for checker, reports in advice:
        yield from ("", f"{checker.name}:")
        for report in reports:
            yield from (clean(line) for line in report.text.split("\n"))
