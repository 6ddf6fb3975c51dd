"""Ctrl-C: a command cleans up, then ends silently by the signal, like other programs."""

import os
import signal
from types import FrameType, TracebackType
from typing import Final, Self

#: Dispositions of SIGINT under which Ctrl-C is handled.
_USUAL: Final = (signal.SIG_DFL, signal.default_int_handler)


class StoppedError(BaseException):
    """Ctrl-C, as an error that click does not catch: click would print an empty line."""


class Interruptible:
    """A block that Ctrl-C ends by KeyboardInterrupt; `came`: Ctrl-C came, even if a library raised another error.

    Outside of the block, the previous handling of Ctrl-C applies.
    """

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Self:
        self._before = signal.getsignal(signal.SIGINT)
        if self._before in _USUAL:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        if self._before in _USUAL:
            signal.signal(signal.SIGINT, self._before)
        if kind is not None and issubclass(kind, (KeyboardInterrupt, StoppedError)):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
        raise KeyboardInterrupt
