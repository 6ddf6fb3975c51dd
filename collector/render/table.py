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

    Its cells may be shortened to ``min_width`` characters (0: never). If that is not enough,
    columns with a ``drop_priority`` are dropped, the highest first. ``preferred_width``: width that
    this column keeps while columns with a ``drop_priority`` above 1 can be dropped.
    """

    title: str
    right: bool = False
    min_width: int = 0
    drop_priority: int = 0
    preferred_width: int = 0


def _fitted(widths: list[int], columns: Sequence[Column], room: int) -> list[int]:
    """Return ``widths`` reduced to fit into ``room``, if possible.

    The widest column that may be shortened is reduced first.
    """
    widths = list(widths)
    while sum(widths) > room:
        reducible = [
            (width, at) for at, width in enumerate(widths) if columns[at].min_width and width > columns[at].min_width
        ]
        if not reducible:
            break
        widths[max(reducible)[1]] -= 1
    return widths


def _min_width(natural: int, column: Column, *, keep_preferred: bool) -> int:
    """Return the minimum width of a column; ``keep_preferred``: other columns can be dropped."""
    return min(natural, max(column.min_width, column.preferred_width if keep_preferred else 0) or natural)


def _chosen(widths: list[int], columns: Sequence[Column], width: int) -> list[int]:
    """Return the positions of the columns that are shown.

    Columns are dropped until the others fit, those with the highest ``drop_priority`` first.
    """
    chosen = list(range(len(columns)))
    while chosen:
        last = max(chosen, key=lambda at: columns[at].drop_priority)
        priority = columns[last].drop_priority
        min_widths = [_min_width(widths[at], columns[at], keep_preferred=priority > 1) + _GAP for at in chosen]
        if not priority or sum(min_widths) - _GAP <= width:
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
