"""A lock for code that a signal handler or destructor may enter again."""

from __future__ import annotations

import _thread
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Callable

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
        self._lock = _thread.RLock()
        self._frame_id = 0  # id of the frame of the function that took the lock

    def take(self) -> _thread.RLock | None:
        """Take the lock and return it, for the caller to release; None if it cannot be taken."""
        lock, frame = self._lock, sys._getframe(1)
        if lock._is_owned():  # type: ignore[attr-defined]  # threading.Condition relies on it; typeshed omits it
            if self._is_held_by_caller(frame):
                return None
            lock = self._lock = _thread.RLock()
        if lock.acquire(True, _WAIT):
            self._frame_id = id(frame)
            return lock
        self._lock = _thread.RLock()
        return None

    def _is_held_by_caller(self, frame: FrameType) -> bool:
        """Return whether a caller of ``frame`` took the lock."""
        caller = frame.f_back
        while caller is not None and id(caller) != self._frame_id:
            caller = caller.f_back
        return caller is not None

    def fast_path(self) -> tuple[Callable[[], bool], Callable[[bool], bool], Callable[[], None]]:
        """Return the parts of ``take`` that never wait: is_owned, acquire, release."""
        lock = self._lock
        return lock._is_owned, lock.acquire, lock.release  # type: ignore[attr-defined]
