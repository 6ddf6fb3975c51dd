"""Advice as text: tfprof's own form, and below each finding what to do."""

from collections.abc import Iterable, Iterator
from typing import Final

from tfprof.collector.render.table import clean
from tfprof.collector.views.advice.report import Advice

_TODO: Final = "  → "


def lines(advice: Iterable[Advice], *, strict: bool = False) -> Iterator[str]:
    """Yield each checker's name and reports; ``strict``: as tfprof prints them, those that have nothing to say too."""
    for checker, reports in advice:
        if not (reports or strict):
            continue
        yield from ("", f"{checker.name}:")
        for report in reports:
            yield from (clean(line) for line in report.text.split("\n"))
            if report.todo and not strict:
                yield f"{_TODO}{report.todo}"
