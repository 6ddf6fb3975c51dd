"""A lock for code that a signal handler or destructor may enter again."""

from __future__ import annotations

import sys
from _thread import RLock
from typing import Callable, TypeVar

from .clock import identity

R = TypeVar("R")

_WAIT = 1.0  # maximum wait for another thread (seconds), far longer than a switch between busy threads takes


class ReentrantGuard(object):
    """A lock that never blocks the job for long.

    ``take`` returns None on re-entry, as from a signal handler or destructor: a function that took
    the lock is still running in this thread. An exception of the job's may prevent a release. So
    the lock is replaced if the calling thread holds it but none of its running functions took it,
    or if another thread holds it for longer than _WAIT.
    """

    __slots__ = ("_frame_id", "_lock")

    def __init__(self) -> None:
        self._lock = RLock()
        self._frame_id = 0  # id of the frame of the function that took the lock

    def take(self) -> RLock | None:
        """Take the lock and return it, for the caller to release; None if it cannot be taken."""
        lock, frame = self._lock, sys._getframe(1)
        if lock._is_owned():  # type: ignore[attr-defined]  # threading.Condition relies on it; typeshed omits it
            caller = frame.f_back
            while caller is not None and identity(caller) != self._frame_id:
                caller = caller.f_back
            if caller is not None:  # a caller took the lock
                return None
            lock = self._lock = RLock()
        if lock.acquire(True, _WAIT):
            self._frame_id = identity(frame)
            return lock
        self._lock = RLock()
        return None

    def call(self, function: Callable[..., R], *args: object) -> R | None:
        """Return the result of ``function``, called with the lock; None if it cannot be taken."""
        lock = self.take()
        if lock is None:
            return None
        try:
            return function(*args)
        finally:
            lock.release()
