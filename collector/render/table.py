"""Plain text tables: columns as wide as their widest cell, two blanks between, numbers to the right."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

#: What would move a terminal's cursor or colours, were it printed as it is.
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


class Column(NamedTuple):
    """A column's heading and side; where lines get too wide it may be cut to ``least`` characters (0: never)."""

    title: str
    right: bool = False
    least: int = 0


def clean(text: str) -> str:
    """Return text from a job with control characters replaced."""
    return CONTROL.sub("?", text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _fitted(widths: list[int], columns: Sequence[Column], room: int) -> list[int]:
    """Return ``widths`` with the widest of the columns that may be cut made narrower until all fit into ``room``."""
    widths = list(widths)
    while sum(widths) > room:
        spare = [(width, at) for at, width in enumerate(widths) if columns[at].least and width > columns[at].least]
        if not spare:
            break
        widths[max(spare)[1]] -= 1
    return widths


def render(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: str = "", width: int | None = None
) -> list[str]:
    """Return the lines of a table, headings first where any column has one, no wider than ``width`` where possible."""
    heads = [column.title for column in columns]
    cells = [[clean(text) for text in row] for row in rows]
    lines = [heads, *cells] if any(heads) else cells
    widths = [max((len(line[at]) for line in lines), default=0) for at in range(len(columns))]
    if width is not None:
        widths = _fitted(widths, columns, width - len(indent) - 2 * (len(columns) - 1))
    return [
        indent
        + "  ".join(
            _cut(text, room).rjust(room) if column.right else _cut(text, room).ljust(room)
            for text, room, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in lines
    ]
