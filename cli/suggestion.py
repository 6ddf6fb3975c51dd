"""What may have been meant by a word that is not known."""

from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the question whether one of ``known`` was meant by ``word``, '' when none is like it."""
    import difflib  # noqa: PLC0415  # for those who mistype

    return "".join(f": did you mean {one}?" for one in difflib.get_close_matches(word, known, 1))
