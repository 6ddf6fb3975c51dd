"""The colors of texts on a terminal: one table, by what a text is.

Colors are the terminal's own sixteen, so that they are readable on dark and on light backgrounds.
Texts are plain unless a program calls `use`.
"""

from typing import Final

from ...commands.streams import Painted, clean

#: Parts of a step by slug, phases of training, and parts of a screen -> parameters of a terminal's
#: escape sequence.
STYLES: Final = {
    "input": "33",
    "before": "36",
    "device": "32",
    "launch": "36",
    "copies": "35",
    "waiting": "31",
    "after": "36",
    "tracing": "35",
    "between": "35",
    "python": "33",
    "unexplained": "2",
    "forward": "32",
    "backward": "34",
    "optimizer": "35",
    "title": "1",
    "heading": "1;4",
    "line": "36",
    "share": "1",
    "verdict": "1",
}
_END: Final = "\x1b[0m"


class _Colors:
    is_used: bool = False


def use(is_used: bool) -> None:
    """Choose whether texts are painted from now on."""
    _Colors.is_used = is_used


def are_used() -> bool:
    """Return whether texts are painted."""
    return _Colors.is_used


def paint(style: str, text: str) -> str:
    """Return ``text`` in a style of STYLES, without control characters.

    Without colors, ``text`` is returned unchanged.
    """
    if not _Colors.is_used or not text.strip():
        return text
    return Painted(f"\x1b[{STYLES[style]}m{clean(text)}{_END}")


def joined(gap: str, texts: list[str]) -> str:
    """Return the cells of a line joined; painted ones stay painted, others are cleaned."""
    if not _Colors.is_used:
        return gap.join(texts)
    return Painted(gap.join(text if isinstance(text, Painted) else clean(text) for text in texts))
