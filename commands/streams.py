"""Standard streams of a command that are closed, are full, or have nobody at the other end."""

from __future__ import annotations

import os
import sys

from ..formats.errors import TfprofError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def stand_in() -> None:
    """Put streams in the place of a closed input and output: they fail as a closed descriptor does."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), "r")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), "w")


def flush_output() -> None:
    """Write what standard output holds; TfprofError ``io`` when that fails, nothing where nobody reads it any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        let_go(sys.stdout)
    except OSError as error:
        let_go(sys.stdout)
        raise unwritten(error) from None


def unwritten(error: OSError) -> TfprofError:
    """Return what is told of ``error``, which writing to standard output ended with."""
    return TfprofError("standard output: %s" % error.strerror, "io")


def say(text: str) -> None:
    """Print a line on standard error, where there is one that takes it."""
    if sys.stderr is not None:
        encoding = sys.stderr.encoding or "utf-8"
        try:
            sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
            sys.stderr.flush()
        except OSError:
            let_go(sys.stderr)


def let_go(stream: TextIO) -> None:
    """Give the interpreter's last flush of ``stream`` somewhere to go."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)
