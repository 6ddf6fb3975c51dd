"""The parts of a step as text: a verdict, a table, notes, and what to type next."""

from collections.abc import Iterator
from typing import Final

from ..numbers import count, duration, percent
from ..summaries.op_classes import COPIES, DEVICE, INPUT, LAUNCH
from ..summaries.parts import BETWEEN, UNEXPLAINED, Breakdown, part_verdict
from . import colors
from .table import Column, render
from .wrapping import wrapped

_COLUMNS: Final = (
    Column("PART", min_width=12, preferred_width=40),
    Column("MEAN", right=True),
    Column("SHARE", right=True),
    Column("", drop_priority=3, is_bar=True),
    Column("EVIDENCE", drop_priority=2),
)
#: Width of the bar of 100 %; minimum share of a detail with a row; maximum number of such rows.
_BAR_WIDTH: Final = 20
_DETAIL_SHARE_MIN: Final = 0.005
_DETAILS_MAX: Final = 4
#: Largest part -> the commands that show more about it.
_NEXT: Final = {
    INPUT: ("advise", "spans"),
    DEVICE: ("op", "advise"),
    LAUNCH: ("op", "advise"),
    COPIES: ("op", "advise"),
    BETWEEN: ("spans", "advise"),
    UNEXPLAINED: ("steps", "host"),
}


def lines(breakdown: Breakdown, job: str, width: int | None) -> Iterator[str]:
    """Yield the parts of the steps of one kind of ``job``, at most ``width`` wide if possible."""
    yield from (colors.paint("verdict", text) for text in wrapped(f"Verdict: {part_verdict(breakdown)}.", width))
    yield ""
    yield from wrapped(summary(breakdown), width)
    yield ""
    rows, slugs = list(_rows(breakdown)), {part.title: part.slug for part in breakdown.parts}
    yield from render(_COLUMNS, rows, width=width, parts=[slugs.get(row[0], "") for row in rows])
    for title, details in {
        "input pipeline, beside the steps": breakdown.pipeline,
        "parts that the code marks": breakdown.marked,
    }.items():
        if details:
            yield ""
            texts = [f"{detail.name} {duration(detail.mean_ns)}" for detail in details[:_DETAILS_MAX]]
            yield from wrapped(f"{title}: {', '.join(texts)} a step", width)
    yield ""
    for text in breakdown.notes:
        yield from wrapped(f"note: {text}", width)
    largest = max(breakdown.parts, key=lambda part: part.mean_ns, default=None)
    commands = _NEXT.get(largest.slug if largest else UNEXPLAINED, ("advise", "spans"))
    yield "next: " + " · ".join(f"tfprof {command} {job}" for command in commands)


def summary(breakdown: Breakdown) -> str:
    """Return the number of steps and their times as one line."""
    return " · ".join(
        [
            f"{breakdown.kind}: {count(breakdown.steps)} of {count(breakdown.all_steps)} steps",
            f"inside from {count(breakdown.traced)} traced",
            f"start to start {duration(breakdown.period_ns)}",
            f"step {duration(breakdown.step_ns)}",
            f"median step {duration(breakdown.median_ns)}",
        ]
    )


def parts_texts(breakdown: Breakdown) -> list[str]:
    """Return the time from start to start, and its parts, the longest first, without short ones."""
    parts = sorted(breakdown.parts, key=lambda part: -part.mean_ns)
    return [
        f"{breakdown.kind} to {breakdown.kind} {duration(breakdown.period_ns)}",
        *(
            f"{part.title} {duration(part.mean_ns)} ({percent(breakdown.share(part.slug))})"
            for part in parts
            if breakdown.share(part.slug) >= _LINE_SHARE_MIN or part.slug == INPUT
        ),
    ]


_LINE_SHARE_MIN: Final = 0.03


def _rows(breakdown: Breakdown) -> Iterator[list[str]]:
    for part in breakdown.parts:
        share = breakdown.share(part.slug)
        yield [part.title, duration(part.mean_ns), percent(share), _bar(share), part.evidence]
        for detail in part.details[:_DETAILS_MAX]:
            detail_share = detail.mean_ns / breakdown.period_ns
            if detail_share >= _DETAIL_SHARE_MIN:
                yield [f"  {detail.name}", duration(detail.mean_ns), percent(detail_share), "", ""]
    yield ["start to start", duration(breakdown.period_ns), percent(1.0), "", ""]


def _bar(share: float) -> str:
    return "█" * round(share * _BAR_WIDTH)
