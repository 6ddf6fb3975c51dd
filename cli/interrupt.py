"""Ctrl-C: a command cleans up, then ends silently by the signal, like other programs."""

import os
import signal
from types import FrameType, TracebackType
from typing import Final, Self

#: Handlers of SIGINT that a block replaces. Any other handler stays in place.
_DEFAULT_HANDLERS: Final = (signal.SIG_DFL, signal.default_int_handler)
#: Time after which a Ctrl-C that came during an import is handled again (seconds).
_RETRY_S: Final = 0.01
#: File and name of the function that imports modules.
_IMPORT_FUNCTION: Final = ("<frozen importlib._bootstrap>", "_find_and_load")


class StoppedError(BaseException):
    """Ctrl-C, as an error that click does not catch.

    Click would catch a KeyboardInterrupt, and print an empty line.
    """


class Interruptible:
    """A block that Ctrl-C ends by KeyboardInterrupt.

    `was_pressed`: whether Ctrl-C was pressed. A library may have turned the KeyboardInterrupt into
    another error. Outside of the block, the previous handling of Ctrl-C applies. During an import,
    Ctrl-C waits for the end of the import: compiled modules abort, or print the exception, when
    they are interrupted while they load.
    """

    def __init__(self) -> None:
        self.was_pressed = False

    def __enter__(self) -> Self:
        self._previous_handler = signal.getsignal(signal.SIGINT)
        if self._previous_handler in _DEFAULT_HANDLERS:
            signal.signal(signal.SIGALRM, self._interrupt)
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        try:
            self._restore()
        except KeyboardInterrupt:  # Ctrl-C was pressed just now, or is handled just now after an import
            kind = KeyboardInterrupt
            self._restore()
        if kind is not None and issubclass(kind, (KeyboardInterrupt, StoppedError)):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)

    def _restore(self) -> None:
        if self._previous_handler in _DEFAULT_HANDLERS:
            signal.signal(signal.SIGINT, self._previous_handler)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _interrupt(self, _number: int, frame: FrameType | None) -> None:
        self.was_pressed = True
        if not _is_importing(frame):
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, _RETRY_S)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether ``frame`` or one of its callers imports a module."""
    while frame is not None:
        if (frame.f_code.co_filename, frame.f_code.co_name) == _IMPORT_FUNCTION:
            return True
        frame = frame.f_back
    return False
