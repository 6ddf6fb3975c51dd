"""Series of a job and its host as text: mean, maximum, and a small curve."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from .. import numbers
from ..summaries.host import Series
from .table import Column, render

#: Characters of a curve, and of the columns before it.
_CURVE, _BEFORE = 32, 38
_COLUMNS: Final = (Column("", min_width=16), Column("MEAN", right=True), Column("MAX", right=True), Column("OVER TIME"))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


#: Ending of a series' name, the text shown in its place, and the format of its values.
_UNITS: Final[tuple[tuple[str, str, Callable[[float | None], str]], ...]] = (
    ("_bytes_per_s", "", numbers.rate),
    ("_bytes", "", numbers.size),
    ("_cores", " cores", numbers.cores),
    ("processes", "processes", _whole),
    ("threads", "threads", _whole),
    ("load_1m", "load", _number),
)


def _cells(series: Series, curve: int) -> list[str]:
    ending, shown, form = next(unit for unit in _UNITS if series.name.endswith(unit[0]))
    name = (series.name.removesuffix(ending) + shown).replace("_", " ")
    return [name, form(series.mean), form(series.maximum), numbers.sparkline(list(series.values), curve)]


def lines(title: str, series: Sequence[Series], width: int | None) -> Iterator[str]:
    """Yield a title and a table with one row per series; a narrow terminal shortens the curves."""
    yield title
    curve = _CURVE if width is None else max(1, min(_CURVE, width - _BEFORE))
    yield from render(_COLUMNS, [_cells(one, curve) for one in series if one.values], indent="  ", width=width)
