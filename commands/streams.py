"""Handles standard streams that are closed, full or without a reader."""

from __future__ import annotations

import os
import sys

from ..formats.errors import TfprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


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


def say(text: str) -> None:
    """Print a line on standard error, if that is possible."""
    if sys.stderr is not None:
        encoding = sys.stderr.encoding or "utf-8"
        try:
            sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
            sys.stderr.flush()
        except OSError:
            redirect_to_null(sys.stderr)


def note(text: str) -> None:
    """Print a note on standard error, such as why a table is empty."""
    say("tfprof: %s" % text)


def redirect_to_null(stream: TextIO) -> None:
    """Redirect ``stream`` to /dev/null, so that the interpreter's last flush succeeds."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)
