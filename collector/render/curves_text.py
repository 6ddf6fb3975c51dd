"""The curves of a job as text: a line for each, with its smallest, mean and largest value."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import cores, duration, quantity, rate, size, sparkline
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


class CurveLine(NamedTuple):
    """A curve: its name, which ends in its unit, and the values of its parts."""

    title: str
    name: str
    least: Sequence[float]
    mean: Sequence[float]
    most: Sequence[float]


def lines(curves: Sequence[CurveLine], width: int | None) -> Iterator[str]:
    """Yield a table of ``curves``."""
    rows = []
    for curve in curves:
        shown = next(form for end, form in _FORMATS if curve.name.endswith(end))
        mean = sum(curve.mean) / len(curve.mean)
        rows.append(
            (
                curve.title,
                shown(min(curve.least)),
                shown(mean),
                shown(max(curve.most)),
                sparkline(list(curve.mean), _WIDTH),
            )
        )
    yield from render(_COLUMNS, rows, width=width)
