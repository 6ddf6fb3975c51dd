"""The curves of a job as text: a line for each, with its smallest, mean and largest value."""

from collections.abc import Callable, Iterator
from typing import Final

from ..numbers import cores, duration, quantity, rate, size, sparkline
from ..query.curves import JobCurves
from ..summaries.series import Buckets
from .table import Column, render

#: Number of characters of a curve.
_WIDTH: Final = 40
#: How values are shown, by the end of the quantity's name.
_FORMATS: Final[tuple[tuple[str, Callable[[float], str]], ...]] = (
    ("_ns", duration),
    ("_bytes_per_s", rate),
    ("_bytes", size),
    ("_cores", cores),
    ("", quantity),
)
_COLUMNS: Final = (
    Column("quantity", min_width=16),
    Column("least", right=True),
    Column("mean", right=True),
    Column("most", right=True),
    Column("over the run", drop_priority=1),
)


def lines(curves: JobCurves, width: int | None) -> Iterator[str]:
    """Yield a table of ``curves``; traced steps have a line of their own."""
    rows = [
        _cells(label, "step_ns", points)
        for curve in curves.steps
        for label, points in ((curve.kind, curve.normal), (f"{curve.kind} (traced)", curve.traced))
        if points is not None
    ]
    rows += [_cells(f"{curve.scope} {curve.name}", curve.name, curve.points) for curve in curves.resources]
    yield from render(_COLUMNS, rows, width=width)


def _cells(title: str, name: str, points: Buckets) -> tuple[str, ...]:
    shown = next(form for end, form in _FORMATS if name.endswith(end))
    figures = map(shown, (min(points.least), points.whole_mean, max(points.most)))
    return (title, *figures, sparkline(list(points.mean), _WIDTH))
