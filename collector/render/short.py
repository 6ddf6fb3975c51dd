"""Names shortened in the middle: their first part and their last ones tell them apart."""

from typing import Final

DOTS: Final = "…"


def shortened(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` characters: parts between slashes are left out whole where that is enough.

    Blanks in front show where a name belongs: they are kept as long as half of the width is left for the name.
    """
    if len(text) <= width:
        return text
    name = text.lstrip(" ")
    indent = min(len(text) - len(name), max(0, width - max(width // 2, min(len(name), width // 2))))
    return " " * indent + _shortened(name, width - indent)


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
