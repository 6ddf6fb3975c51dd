"""The base classes of errors that are shown to users."""

from __future__ import annotations

#: Maximum length of a word and of a whole message; longer ones are shortened in the middle.
WORD_MAX = 240
TEXT_MAX = 1200


class TfprofError(Exception):
    """An error with a message for a person.

    ``slug`` names a paragraph of docs/errors.md. ``exit_code`` is that of the command: 2 for an
    invalid command line, environment variable or settings file, 1 for all other errors, such as a
    full disk or an unknown job.
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
    """Return ``text`` as one line: unprintable characters are escaped, long words shortened."""
    words = (shortened("".join(map(_printable, word)), WORD_MAX) for word in text.split())
    return shortened(" ".join(words), TEXT_MAX)


def shortened(text: str, width: int) -> str:
    """Return ``text``, with dots in place of its middle if it is longer than ``width``."""
    if len(text) <= width:
        return text
    half = (width - 3) // 2
    return text[:half] + "..." + text[-half:]


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


class UsageError(TfprofError):
    """A command line or environment variable that is invalid."""

    slug = "usage"
    exit_code = 2


class FolderError(TfprofError):
    """A store or runtime folder cannot be used.

    Its owner or its mode is wrong, it cannot be written, or its path is relative or too long.
    """

    slug = "runtime-dir"


class FormatError(TfprofError):
    """Bytes that violate a format: truncated, out of bounds, or of an unknown version."""

    slug = "bad-format"


class VersionError(FormatError):
    """A format version that this build does not support; the message names both versions."""

    slug = "unknown-version"

    def __init__(self, format_name: str, version: int, supported_version: int) -> None:
        super().__init__(
            "%s version %d is not supported (this build speaks %d): use the same tfprof release on both sides"
            % (format_name, version, supported_version)
        )
