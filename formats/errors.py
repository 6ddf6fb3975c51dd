"""The root of every error that a user is shown."""

from __future__ import annotations

#: What is quoted in a message is shortened in the middle to so many characters without a blank, and the message to so many in all.
WORD_MAX = 240
TEXT_MAX = 1200


class TfprofError(Exception):
    """An error with a message for a person.

    ``slug`` names a paragraph of docs/errors.md, ``exit_code`` is what a command ends with: 1 when
    the world is at fault (a full disk, no such job), 2 when the command line is.
    """

    slug = "internal"
    exit_code = 1

    def __init__(self, message: str, slug: str | None = None) -> None:
        super().__init__(message)
        if slug is not None:
            self.slug = slug

    def __str__(self) -> str:
        return "%s [%s]" % (one_line(self.args[0]), self.slug)


def one_line(text: str) -> str:
    """Return ``text`` as one line that a terminal can show: what is long is shortened, what is not printable is spelled out."""
    words = (shortened("".join(map(_printable, word)), WORD_MAX) for word in text.split())
    return shortened(" ".join(words), TEXT_MAX)


def shortened(text: str, most: int) -> str:
    """Return ``text`` with dots in the place of its middle when it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    half = (most - 3) // 2
    return text[:half] + "..." + text[-half:]


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


class UsageError(TfprofError):
    """A command line, or a variable of the environment, that cannot be carried out as it stands."""

    slug = "usage"
    exit_code = 2


class FormatError(TfprofError):
    """Bytes that do not follow a format of ours: cut short, out of bounds, or of an unknown version."""

    slug = "bad-format"


class VersionError(FormatError):
    """A format version this build does not speak; the message names both versions."""

    slug = "unknown-version"

    def __init__(self, what: str, theirs: int, ours: int) -> None:
        super().__init__(
            "%s version %d is not spoken here (this build speaks %d): use the same tfprof release on both sides"
            % (what, theirs, ours)
        )
