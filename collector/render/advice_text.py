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

#: No-break space between a number and its unit.
_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|[KMGT]?B\b|[nµm]?s\b))")
_LINE: Final = "  your line:  "
_TODO: Final = "  what to do: "


def lines(advice: Iterable[Advice], width: int | None = None, parity: Parity = DEFAULT) -> Iterator[str]:
    """Yield the advice, at most ``width`` wide."""
    if not parity.has_own_layout:
        yield from _of_tf_profiler(advice)
        return
    reports = [(checker.title, report) for checker, found in advice for report in found]
    for at, (title, report) in enumerate(reports):
        if at:
            yield ""
        yield from _paragraphs(title, report, width)


def _paragraphs(title: str, report: Report, width: int | None) -> Iterator[str]:
    yield from _wrapped(f"{title}: ", report.text, width)
    if report.line:
        yield from _wrapped(_LINE, report.line, width)
    if report.todo:
        yield from _wrapped(_TODO, report.todo, width)


def _wrapped(head: str, text: str, width: int | None) -> list[str]:
    indent = " " * (len(head) if head in {_LINE, _TODO} else 2)
    whole = head + clean(text)
    if width is None:
        return [whole]
    lines = wrap(_UNIT.sub("\u00a0", whole), width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _of_tf_profiler(advice: Iterable[Advice]) -> Iterator[str]:
    for checker, reports in advice:
        yield from ("", f"{checker.name}:")
        for report in reports:
            yield from (clean(line) for line in report.text.split("\n"))
