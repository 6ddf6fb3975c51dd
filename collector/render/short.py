"""Shortens names in the middle, since their first and last parts distinguish them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

DOTS: Final = "…"


def shortened(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` characters.

    Whole parts between slashes are left out if that is enough. The indentation shows the depth in
    the tree; it is kept as far as half of the width remains for the name.
    """
    if len(text) <= width:
        return text
    name, indent = _placed(text, width)
    return " " * indent + _shortened(name, width - indent)


def shortened_distinctly(texts: Sequence[str], width: int) -> list[str]:
    """Return ``texts`` shortened to ``width``.

    Where different texts would look the same, their ends are shown instead.
    """
    short = [shortened(text, width) for text in texts]
    originals: dict[str, set[str]] = defaultdict(set)
    for text, seen in zip(texts, short, strict=True):
        originals[seen.strip()].add(text.strip())
    return [
        _end(text, width) if len(originals[seen.strip()]) > 1 and len(text) > width else seen
        for text, seen in zip(texts, short, strict=True)
    ]


def _placed(text: str, width: int) -> tuple[str, int]:
    """Return the name in ``text``, and the number of leading blanks that are kept."""
    name = text.lstrip(" ")
    return name, min(len(text) - len(name), max(0, width - max(width // 2, min(len(name), width // 2))))


def _end(text: str, width: int) -> str:
    name, indent = _placed(text, width)
    room = width - indent - len(DOTS)
    return " " * indent + (name if len(name) <= room + len(DOTS) else DOTS + name[len(name) - max(0, room) :])


def _shortened(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    first, slash, rest = name.partition("/")
    room = width - len(first) - 2 * len(slash) - len(DOTS)
    at = rest.find("/", max(0, len(rest) - room - 1)) if slash else -1
    if at >= 0:
        return f"{first}/{DOTS}{rest[at:]}"
    room = max(0, width - len(DOTS))
    front = room // 3
    return name[:front] + DOTS[:width] + name[len(name) - (room - front) :]
