"""Suggests a correction of an unknown word."""

from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question with the most similar word in ``known``, '' if none is similar."""
    import difflib  # noqa: PLC0415  # needed after errors only

    return "".join(f": did you mean {match}?" for match in difflib.get_close_matches(word, known, 1))
