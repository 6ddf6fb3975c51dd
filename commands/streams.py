"""Prints on the standard streams, which may be closed, full or without a reader.

Every text for a terminal passes `clean`.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys

from ..formats.errors import TfprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

#: Control characters of ASCII and Latin-1, which a terminal takes as commands or as ends of lines;
#: Unicode's separators of lines, and its controls of the direction of text; lone surrogates.
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

#: Levels of syslog, for lines in the journal of systemd. Without one, a line is information.
ERROR, WARNING = 3, 4
#: Device and inode of the stream that systemd has connected to the journal.
JOURNAL = "JOURNAL_STREAM"
#: On a terminal that is narrower, messages are not broken between words.
_WIDTH_MIN = 40


def clean(text: str, kept: str = "") -> str:
    """Return ``text`` with `?` in place of each control character that is not in ``kept``.

    Names, paths and messages of jobs may contain any character. A cleaned text is one line, unless
    ``kept`` contains the newline. It can be printed, and can be a value in an environment.
    """
    return _CONTROL.sub(lambda match: match[0] if match[0] in kept else "?", text)


class Painted(str):
    """A text that is clean but for the escape sequences of its colors."""

    __slots__ = ()


def print_lines(lines: Iterable[str], kept: str = "", stream: TextIO | None = None) -> None:
    """Print cleaned lines on ``stream`` (by default standard output), then flush.

    Characters that the stream cannot encode are replaced. ``kept``: control characters that belong
    to the layout of the lines.
    """
    stream = stream or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    for line in lines:
        text = line if isinstance(line, Painted) else clean(line, kept)
        stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()  # before messages on stderr


def print_json(pieces: Iterable[str]) -> None:
    """Print JSON piece by piece, then flush; JSON escapes all control characters in its strings."""
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.flush()


def replace_closed() -> None:
    """Replace closed standard input and output by streams that fail as closed descriptors do."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), "r")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), "w")


def flush_output() -> None:
    """Flush standard output.

    TfprofError ``io`` when that fails; a broken pipe is ignored.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        redirect_to_null(sys.stdout)
    except OSError as error:
        redirect_to_null(sys.stdout)
        raise output_error(error) from None


def output_error(error: OSError) -> TfprofError:
    """Return the error for a failed write to standard output."""
    return TfprofError("standard output: %s" % error.strerror, "io")


def _wrapped(line: str, stream: TextIO) -> list[str]:
    """Return ``line`` as lines that fit if ``stream`` is a terminal, broken between words."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return [line]
    if not _WIDTH_MIN <= width < len(line):
        return [line]
    import textwrap

    return textwrap.wrap(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _mark(level: int) -> str:
    """Return what begins a line on standard error of ``level`` (0: none) if that is the journal."""
    wanted = os.environ.get(JOURNAL) if level else None
    if not wanted or sys.stderr is None:
        return ""
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return ""
    return "<%d>" % level if wanted == "%d:%d" % (status.st_dev, status.st_ino) else ""


def say(*lines: str, level: int = 0) -> None:
    """Print cleaned lines on standard error, if that is possible."""
    if sys.stderr is not None:
        mark = _mark(level)
        try:
            parts = (mark + part for line in lines for part in _wrapped(clean(line), sys.stderr))
            print_lines(parts, stream=sys.stderr)
        except OSError:
            redirect_to_null(sys.stderr)


def note(text: str, *, level: int = 0) -> None:
    """Print a note on standard error, such as why a table is empty."""
    say("tfprof: %s" % text, level=level)


def log(text: str, *, level: int = 0) -> None:
    """Print the lines of ``text`` into the log of this daemon; ignore write errors."""
    with contextlib.suppress(OSError, ValueError):  # a full disk or a closed pipe must not disturb the jobs
        mark = _mark(level)
        print_lines((mark + line for line in text.splitlines()), stream=sys.stderr)


def redirect_to_null(stream: TextIO) -> None:
    """Redirect ``stream`` to /dev/null, so that the interpreter's last flush succeeds."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)
