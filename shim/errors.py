"""The root of every error that a user is shown."""

from __future__ import annotations


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
        return "%s [%s]" % (self.args[0], self.slug)


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
