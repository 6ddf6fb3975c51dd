"""Wraps the lines of text above, below and between tables."""

import re
import textwrap
from typing import Final

#: Minimum width of a wrapped line.
_WIDTH_MIN: Final = 40
#: The space between a number and its unit, at which a line is not broken.
_SPACE_BEFORE_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|[KMGT]?B\b|[nµm]?s\b))")
_NO_BREAK_SPACE: Final = "\u00a0"


def wrapped(text: str, width: int | None, indent: str = "  ", first_indent: str = "") -> list[str]:
    """Return ``text`` as lines of ``width``, or as one line for None; none for an empty text.

    ``indent`` begins each line but the first. A number and its unit stay on one line.
    """
    if width is None:
        return [first_indent + text] if text else []
    lines = textwrap.wrap(
        _SPACE_BEFORE_UNIT.sub(_NO_BREAK_SPACE, text),
        max(width, _WIDTH_MIN),
        initial_indent=first_indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK_SPACE, " ") for line in lines]
