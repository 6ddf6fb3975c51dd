"""Plain text tables: columns as wide as their widest cell, two blanks between, numbers to the right."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

#: What would move a terminal's cursor or colours, were it printed as it is.
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


class Column(NamedTuple):
    """A column's heading and side; ``most`` characters of a cell are shown, the rest is cut."""

    title: str
    right: bool = False
    most: int = 0


def clean(text: str) -> str:
    """Return text from a job with control characters replaced."""
    return CONTROL.sub("?", text)


def _cell(text: str, column: Column) -> str:
    text = clean(text)
    return text if not column.most or len(text) <= column.most else text[: column.most - 1] + "…"


def render(columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Return the lines of a table, headings first where any column has one."""
    heads = [column.title for column in columns]
    cells = [[_cell(text, column) for text, column in zip(row, columns, strict=True)] for row in rows]
    lines = [heads, *cells] if any(heads) else cells
    widths = [max((len(line[at]) for line in lines), default=0) for at in range(len(columns))]
    return [
        indent
        + "  ".join(
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in lines
    ]
