"""Series of a job and its host as text: mean, maximum, and a curve of characters."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from .. import numbers
from ..summaries.host import Series
from .table import Column, render

#: Characters of a curve, and of the columns before it.
_CURVE_WIDTH, _OTHER_WIDTH = 32, 38
_COLUMNS: Final = (Column("", min_width=16), Column("MEAN", right=True), Column("MAX", right=True), Column("OVER TIME"))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _integer(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


#: Ending of a series' name, the text shown in its place, and the format of its values.
_UNITS: Final[tuple[tuple[str, str, Callable[[float | None], str]], ...]] = (
    ("_bytes_per_s", "", numbers.rate),
    ("_bytes", "", numbers.size),
    ("_cores", " cores", numbers.cores),
    ("processes", "processes", _integer),
    ("threads", "threads", _integer),
    ("load_1m", "load", _number),
)


def _cells(series: Series, curve_width: int) -> list[str]:
    ending, label, format_value = next(unit for unit in _UNITS if series.name.endswith(unit[0]))
    name = (series.name.removesuffix(ending) + label).replace("_", " ")
    curve = numbers.sparkline(list(series.values), curve_width)
    return [name, format_value(series.mean), format_value(series.maximum), curve]


def lines(title: str, series: Sequence[Series], width: int | None) -> Iterator[str]:
    """Yield a title and a table with one row per series; a narrow terminal shortens the curves."""
    yield title
    curve_width = _CURVE_WIDTH if width is None else max(1, min(_CURVE_WIDTH, width - _OTHER_WIDTH))
    rows = [_cells(one_series, curve_width) for one_series in series if one_series.values]
    yield from render(_COLUMNS, rows, indent="  ", width=width)
