"""Suggests a correction of an unknown word."""

from collections.abc import Iterable, Mapping
from typing import Final

_NOTHING: Final[Mapping[str, str]] = {}


def suggestion(word: str, known: Iterable[str], meant: Mapping[str, str] = _NOTHING, prefix: str = "") -> str:
    """Return a question with the known word that ``word`` may stand for, '' if there is none.

    That is the word that ``meant`` has for it, else one that begins with it, or with which it
    begins, else the most similar one. Words are compared without ``prefix``, which each has.
    """
    import difflib  # noqa: PLC0415  # needed after errors only

    words, lower = [other.removeprefix(prefix) for other in known], word.lower().removeprefix(prefix)
    matches = [meant[lower]] if lower in meant else []
    matches += sorted((other for other in words if other.startswith(lower)), key=len) if len(lower) > 1 else []
    matches += sorted((other for other in words if len(other) > 1 and lower.startswith(other)), key=len, reverse=True)
    matches += difflib.get_close_matches(lower, words, 1)
    return f": did you mean {prefix}{matches[0]}?" if matches else ""
