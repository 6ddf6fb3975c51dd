"""The width of texts on a terminal, in cells: a wide character takes two, a combining mark none."""

from functools import lru_cache
from typing import Final

#: Characters without a cell of their own that are no combining marks: invisible ones, and the
#: vowels and last consonants of decomposed Korean syllables.
_WITHOUT_CELLS: Final = frozenset("\u200b\u200c\u200d\u2060\ufeff") | frozenset(map(chr, range(0x1160, 0x1200)))
#: The categories of combining marks.
_MARKS: Final = frozenset(("Mn", "Me"))


@lru_cache(maxsize=4096)
def _character_cells(character: str) -> int:
    import unicodedata  # noqa: PLC0415  # most tables are ASCII

    if character in _WITHOUT_CELLS or unicodedata.category(character) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def cells(text: str) -> int:
    """Return the number of cells that ``text`` takes, a control character one."""
    return len(text) if text.isascii() else sum(map(_character_cells, text))


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return ``text`` with blanks up to ``width`` cells, before it if ``right``."""
    length = width - cells(text) + len(text)
    return text.rjust(length) if right else text.ljust(length)


def first_cells(text: str, width: int) -> str:
    """Return the longest start of ``text`` that takes at most ``width`` cells."""
    if text.isascii() or width <= 0:
        return text[: max(0, width)]
    room = width
    for index, character in enumerate(text):
        room -= _character_cells(character)
        if room < 0:
            return text[:index]
    return text


def last_cells(text: str, width: int) -> str:
    """Return the longest end of ``text`` that takes at most ``width`` cells.

    It does not begin with a mark of a character before it.
    """
    if text.isascii():
        return text[max(0, len(text) - max(0, width)) :]
    room, first = width, len(text)
    for index in range(len(text) - 1, -1, -1):
        taken = _character_cells(text[index])
        room -= taken
        if room < 0:
            break
        if taken:
            first = index
    return text[first:]
