"""A lock that is taken without waiting; an attempt fails if the lock is held.

An exception of the job's, as from a signal handler, may end our code at any line. So an object
stands for the held lock, and the lock is released when this object is deleted.
"""

from __future__ import annotations

from _thread import get_ident

from .weak_table import WeakTable


class Hold(object):
    """A lock held by the thread ``thread_ident``; it is released when this object is deleted."""

    __slots__ = ("__weakref__", "thread_ident")

    def __init__(self) -> None:
        self.thread_ident = get_ident()


class TryLock(object):
    """A lock that has one holder at a time; a forked child needs a new one."""

    __slots__ = ("_holds",)

    def __init__(self) -> None:
        self._holds = WeakTable()  # the oldest has the lock; the others are attempts of this moment

    def take(self) -> Hold | None:
        """Take the lock and return the hold; None while there is another hold."""
        hold = Hold()
        self._holds.set(hold)
        return hold if self._holds.existing()[0] is hold else None

    @property
    def is_held_by_another_thread(self) -> bool:
        """Whether a thread other than the calling one holds the lock."""
        return any(hold.thread_ident != get_ident() for hold in self._holds.existing())
