"""Plain text tables.

Columns are as wide as their widest cell and two spaces apart. Numbers are right-aligned.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..text import clean
from .short import shortened_distinctly

_GAP: Final = 2


class Column(NamedTuple):
    """Heading and alignment of a column, and its rules if lines get too wide.

    Its cells may be shortened to ``least`` characters (0: never). If that is not enough, columns
    with a ``spare`` are dropped, the highest first. ``fair``: width that this column keeps while
    columns with a ``spare`` above 1 can be dropped.
    """

    title: str
    right: bool = False
    least: int = 0
    spare: int = 0
    fair: int = 0


def _fitted(widths: list[int], columns: Sequence[Column], room: int) -> list[int]:
    """Return ``widths`` reduced to fit into ``room``, if possible.

    The widest column that may be shortened is reduced first.
    """
    widths = list(widths)
    while sum(widths) > room:
        spare = [(width, at) for at, width in enumerate(widths) if columns[at].least and width > columns[at].least]
        if not spare:
            break
        widths[max(spare)[1]] -= 1
    return widths


def _least(natural: int, column: Column, *, fair: bool) -> int:
    """Return the minimum width of a column; ``fair``: other columns can still be dropped."""
    return min(natural, max(column.least, column.fair if fair else 0) or natural)


def _chosen(widths: list[int], columns: Sequence[Column], width: int) -> list[int]:
    """Return the positions of the columns that are shown.

    Columns are dropped until the others fit, those with the highest ``spare`` first.
    """
    chosen = list(range(len(columns)))
    while chosen:
        last = max(chosen, key=lambda at: columns[at].spare)
        spare = columns[last].spare
        least = [_least(widths[at], columns[at], fair=spare > 1) + _GAP for at in chosen]
        if not spare or sum(least) - _GAP <= width:
            break
        chosen.remove(last)
    return chosen


def _line(texts: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    placed = (
        text.rjust(width) if column.right else text.ljust(width)
        for text, width, column in zip(texts, widths, columns, strict=True)
    )
    return (" " * _GAP).join(placed).rstrip()


def render(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: str = "", width: int | None = None
) -> list[str]:
    """Return the lines of a table, headings first if any column has one.

    They are at most ``width`` wide if possible.
    """
    heads = [column.title for column in columns]
    cells = [[clean(text) for text in row] for row in rows]
    lines = [heads, *cells] if any(heads) else cells
    widths = [max((len(line[at]) for line in lines), default=0) for at in range(len(columns))]
    if width is not None:
        chosen = _chosen(widths, columns, width - len(indent))
        columns, widths = [columns[at] for at in chosen], [widths[at] for at in chosen]
        lines = [[line[at] for at in chosen] for line in lines]
        widths = _fitted(widths, columns, width - len(indent) - _GAP * (len(columns) - 1))
    shown = [shortened_distinctly([line[at] for line in lines], width) for at, width in enumerate(widths)]
    return [indent + _line(line, widths, columns) for line in zip(*shown, strict=True)]
