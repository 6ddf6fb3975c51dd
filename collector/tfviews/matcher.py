"""Regular expressions as tfprof has them: RE2's, on UTF-8, matching whole names, in time linear in the name."""

from functools import lru_cache
from typing import Any, Final

from .encoding import octets

#: The list that means everything, and is never looked at as a regex.
ALL: Final = (".*",)
#: Compiled patterns that are kept.
_KNOWN: Final = 256


@lru_cache(_KNOWN)
def _compiled(pattern: str) -> tuple[Any, str]:
    """Return what matches ``pattern`` and '', or None and what is wrong with it."""
    import re2  # noqa: PLC0415  # 10 ms of a command's start, and most queries name no pattern

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(octets(pattern), options), ""
    except re2.error as error:
        why = error.args[0]
        return None, why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)


def wrong(pattern: str) -> str:
    """Return what is wrong with ``pattern``, '' when it is a regular expression."""
    return _compiled(pattern)[1]


class Matcher:
    """A list of regexes that match whole names, as RE2's full match does; one that is no regex matches nothing.

    ALL means everything, without ``shortcut`` only what has no line break in it: tfprof takes it at its word where it hides and trims.
    """

    __slots__ = ("everything", "patterns")

    def __init__(self, patterns: tuple[str, ...], *, shortcut: bool = True) -> None:
        self.everything = shortcut and patterns == ALL
        self.patterns = () if self.everything else tuple(one for text in patterns if (one := _compiled(text)[0]))

    def __call__(self, name: str) -> bool:
        """Say whether a pattern matches the whole of ``name``."""
        if self.everything or not self.patterns:
            return self.everything
        text = octets(name)
        return any(pattern.fullmatch(text) for pattern in self.patterns)
