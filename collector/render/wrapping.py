"""Wraps the lines of text above, below and between tables."""

import re
from typing import Final

from .cells import cells, first_cells

#: Minimum width of a wrapped line.
_WIDTH_MIN: Final = 40
#: A word with the blanks before it. A number and its unit are one word.
_WORD: Final = re.compile(r"(\s*)((?:\S|(?<=\d) (?=(?:%|[KMGT]?B\b|[nµm]?s\b)))+)", re.ASCII)


def wrapped(text: str, width: int | None, indent: str = "  ", first_indent: str = "") -> list[str]:
    """Return ``text`` as lines of ``width`` cells, or as one line for None; none for an empty text.

    ``indent`` begins each line but the first. A number and its unit stay on one line.
    """
    if width is None:
        return [first_indent + text] if text else []
    width = max(width, _WIDTH_MIN)
    lines, line = [], first_indent
    for blanks, word in _WORD.findall(text):
        spaced = " " * len(blanks) + word
        if line not in {first_indent, indent} and cells(line + spaced) > width >= cells(indent + word):
            lines.append(line)
            line, spaced = indent, word
        line += spaced
        while cells(line) > width:  # the word is longer than a line
            start = first_cells(line, width)
            lines.append(start.rstrip())
            line = indent + line[len(start) :].lstrip()
    return [*lines, line] if line not in {first_indent, indent} else lines
