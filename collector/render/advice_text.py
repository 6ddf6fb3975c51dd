"""Advice as text: a verdict, and findings with the user's line and the remedy.

Text in the TF profiler's layout lists every checker and is not wrapped.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..advice.report import Advice, Report
from ..advice.verdict import findings, fine, verdict, without_data
from ..summaries.parts import Breakdown
from ..tfviews.parity import DEFAULT, Parity
from . import colors
from .breakdown_text import parts_texts
from .wrapping import wrapped

_VERDICT: Final = "Verdict: "
_FINE: Final = "Checked, and fine: "
_LINE: Final = "  your line:  "
_REMEDY: Final = "  what to do: "


def lines(
    advice: Sequence[Advice],
    width: int | None = None,
    parity: Parity = DEFAULT,
    parts: Breakdown | None = None,
) -> Iterator[str]:
    """Yield the lines of the advice, at most ``width`` wide.

    The first is the verdict, then come the ``parts`` of a step. The last ones list the checks
    without a finding, and those without data.
    """
    if not parity.has_own_layout:
        yield from _tf_profiler_lines(advice)
        return
    yield from (colors.paint("verdict", text) for text in _wrapped(_VERDICT, f"{verdict(advice)}.", width))
    if parts is not None:
        first, *others = parts_texts(parts)
        yield from _wrapped("", f"{first}: {', '.join(others)}.", width)
    for checker, report in findings(advice):
        yield ""
        yield from _paragraphs(checker.title, report, width)
    checked = [
        (_FINE, fine(advice)),
        *((f"No data ({missing}): ", titles) for missing, titles in without_data(advice)),
    ]
    yield ""
    for label, titles in checked:
        if titles:
            yield from _wrapped(label, f"{', '.join(titles)}.", width)


def _paragraphs(title: str, report: Report, width: int | None) -> Iterator[str]:
    yield from _wrapped(f"{title}: ", report.text, width)
    if report.line:
        yield from (colors.paint("line", text) for text in _wrapped(_LINE, report.line, width))
    if report.remedy:
        yield from _wrapped(_REMEDY, report.remedy, width)


def _wrapped(label: str, text: str, width: int | None) -> list[str]:
    indent = " " * (len(label) if label in {_LINE, _REMEDY} else 2)
    return wrapped(label + text, width, indent)


def _tf_profiler_lines(advice: Iterable[Advice]) -> Iterator[str]:
    for checker, reports, _ in advice:
        yield from ("", f"{checker.name}:")
        for report in reports:
            yield from report.text.split("\n")
