"""Shortens names in the middle, since their first and last parts distinguish them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from .cells import cells, first_cells, last_cells

DOTS: Final = "…"


def shortened(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` cells.

    Whole parts between slashes are left out if that is enough. The indentation shows the depth in
    the tree; it is reduced if less than half of the width would remain for the name.
    """
    if cells(text) <= width:
        return text
    name, indent = _name_and_indent(text, width)
    return " " * indent + _shortened(name, width - indent)


def shortened_distinctly(texts: Sequence[str], width: int) -> list[str]:
    """Return ``texts`` shortened to ``width``.

    Texts that would look the same although they differ are shortened at the start instead.
    """
    short_texts = [shortened(text, width) for text in texts]
    originals: dict[str, set[str]] = defaultdict(set)
    for text, short in zip(texts, short_texts, strict=True):
        originals[short.strip()].add(text.strip())
    return [
        _shortened_start(text, width) if len(originals[short.strip()]) > 1 and cells(text) > width else short
        for text, short in zip(texts, short_texts, strict=True)
    ]


def _name_and_indent(text: str, width: int) -> tuple[str, int]:
    """Return the name in ``text``, and the number of leading blanks that are kept."""
    name = text.lstrip(" ")
    return name, min(len(text) - len(name), max(0, width - width // 2))


def _shortened_start(text: str, width: int) -> str:
    name, indent = _name_and_indent(text, width)
    room = width - indent
    return " " * indent + (name if cells(name) <= room else DOTS + last_cells(name, room - len(DOTS)))


def _shortened(name: str, width: int) -> str:
    if cells(name) <= width:
        return name
    first, slash, rest = name.partition("/")
    room = width - cells(first) - 2 * len(slash) - len(DOTS)
    slash_index = rest.find("/", len(rest) - len(last_cells(rest, room + 1))) if slash else -1
    if slash_index >= 0:
        return f"{first}/{DOTS}{rest[slash_index:]}"
    room = max(0, width - len(DOTS))
    first_part = first_cells(name, room // 3)
    return first_part + DOTS[:width] + last_cells(name, room - cells(first_part))
