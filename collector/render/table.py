"""Plain text tables; widths are in cells of the terminal.

Columns are as wide as their widest cell and two spaces apart. Numbers are right-aligned.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from . import colors
from .cells import cells, padded
from .short import shortened_distinctly

_GAP: Final = 2


class Column(NamedTuple):
    """Title and alignment of a column, and the rules that apply to it if lines are too wide.

    Its cells may be shortened to ``min_width`` (0: never). If that is not enough,
    columns with a ``drop_priority`` are dropped, the highest first. ``preferred_width``: width that
    this column keeps while columns with a ``drop_priority`` above 1 can be dropped. ``is_bar``: its
    cells are bars.
    """

    title: str
    right: bool = False
    min_width: int = 0
    drop_priority: int = 0
    preferred_width: int = 0
    is_bar: bool = False


def _fitted(widths: list[int], columns: Sequence[Column], room: int) -> list[int]:
    """Return ``widths`` reduced to fit into ``room``, if possible.

    The widest column that may be shortened is reduced first.
    """
    widths = list(widths)
    while sum(widths) > room:
        reducible = [
            (width, index)
            for index, width in enumerate(widths)
            if columns[index].min_width and width > columns[index].min_width
        ]
        if not reducible:
            break
        widths[max(reducible)[1]] -= 1
    return widths


def _min_width(natural_width: int, column: Column, *, keep_preferred: bool) -> int:
    """Return the minimum width of a column, at least its preferred width if ``keep_preferred``."""
    return min(natural_width, max(column.min_width, column.preferred_width if keep_preferred else 0) or natural_width)


def _shown_indexes(widths: list[int], columns: Sequence[Column], width: int) -> list[int]:
    """Return the indexes of the columns that are shown.

    Columns are dropped until the others fit, those with the highest ``drop_priority`` first.
    """
    indexes = list(range(len(columns)))
    while indexes:
        candidate = max(indexes, key=lambda index: columns[index].drop_priority)
        priority = columns[candidate].drop_priority
        min_widths = [
            _min_width(widths[index], columns[index], keep_preferred=priority > 1) + _GAP for index in indexes
        ]
        if not priority or sum(min_widths) - _GAP <= width:
            break
        indexes.remove(candidate)
    return indexes


def _line(texts: Sequence[str], widths: Sequence[int], columns: Sequence[Column], styles: Sequence[str]) -> str:
    """Return a line; ``styles``: the style of each cell, empty for none."""
    aligned = [
        padded(text, width, right=column.right) for text, width, column in zip(texts, widths, columns, strict=True)
    ]
    aligned[-1] = aligned[-1].rstrip()
    if not colors.are_used():
        return (" " * _GAP).join(aligned).rstrip()
    return colors.joined(
        " " * _GAP, [colors.paint(style, text) if style else text for style, text in zip(styles, aligned, strict=True)]
    )


def _styles(columns: Sequence[Column], part: str) -> list[str]:
    """Return the styles of a row's cells; ``part``: the style of its first cell and its bar."""
    return [
        part if index == 0 or column.is_bar else _STYLES.get(column.title.lower(), "")
        for index, column in enumerate(columns)
    ]


#: Titles of columns -> styles of their cells.
_STYLES: Final = {"line": "line", "share": "share"}


def render(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    indent: str = "",
    width: int | None = None,
    parts: Sequence[str] = (),
) -> list[str]:
    """Return the lines of a table, headings first if any column has one.

    They are at most ``width`` wide if possible. ``parts``: the style of each row's first cell and
    bar, of the table in `colors`.
    """
    titles = [column.title for column in columns]
    lines = [titles, *rows] if any(titles) else list(rows)
    widths = [max((cells(line[index]) for line in lines), default=0) for index in range(len(columns))]
    if width is not None:
        indexes = _shown_indexes(widths, columns, width - len(indent))
        columns, widths = [columns[index] for index in indexes], [widths[index] for index in indexes]
        lines = [[line[index] for index in indexes] for line in lines]
        widths = _fitted(widths, columns, width - len(indent) - _GAP * (len(columns) - 1))
    shown_cells = [shortened_distinctly([line[index] for line in lines], width) for index, width in enumerate(widths)]
    has_titles = any(titles)
    row_styles = [_styles(columns, part) for part in parts or [""] * len(rows)]
    styles = [["heading"] * len(columns), *row_styles] if has_titles else row_styles
    return [
        colors.joined("", [indent, _line(line, widths, columns, line_styles)])
        for line, line_styles in zip(zip(*shown_cells, strict=True), styles, strict=True)
    ]
