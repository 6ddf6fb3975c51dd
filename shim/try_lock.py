"""A lock that is taken without waiting; an attempt fails if the lock is held.

An exception of the job's, as from a signal handler, may end our code at any line. So an object
stands for the held lock, and the lock is released when this object is deleted.
"""

from __future__ import annotations

import _thread
import weakref

from .reentrant_guard import ReentrantGuard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


class Hold(object):
    """A lock held by the thread ``thread_ident``; it is released when this object is deleted."""

    __slots__ = ("__weakref__", "thread_ident")

    def __init__(self) -> None:
        self.thread_ident = _thread.get_ident()


def _no_hold() -> Hold | None:
    """Return None, as a dead weak reference does."""
    return None


class TryLock(object):
    """A lock that has one holder at a time; a forked child needs a new one."""

    __slots__ = ("_guard", "_holder")

    def __init__(self) -> None:
        self._guard = ReentrantGuard()
        self._holder: Callable[[], Hold | None] = _no_hold

    def take(self) -> Hold | None:
        """Take the lock and return the hold; None while there is another hold."""
        lock = self._guard.take()
        if lock is None:
            return None
        try:
            if self._holder() is not None:
                return None
            hold = Hold()
            self._holder = weakref.ref(hold)
            return hold
        finally:
            lock.release()

    @property
    def is_held_by_another_thread(self) -> bool:
        """Whether a thread other than the calling one holds the lock."""
        hold = self._holder()
        return hold is not None and hold.thread_ident != _thread.get_ident()
