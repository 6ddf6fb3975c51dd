"""Ctrl-C: ends what a command does in order, and then the process, as it ends any program: silently, by the signal."""

import os
import signal
from types import FrameType, TracebackType
from typing import Final, Self

#: Dispositions that Ctrl-C is not kept from us by.
_USUAL: Final = (signal.SIG_DFL, signal.default_int_handler)


class StoppedError(BaseException):
    """Ctrl-C, on its way past click, which would print an empty line."""


class Interruptible:
    """A stretch that Ctrl-C ends by KeyboardInterrupt; `came` tells so where a library has made another error of it.

    Before and after it Ctrl-C does what it did.
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
