"""Turns: something that one caller at a time may use, none of whom waits for it.

An exception of the job's, as from a signal handler, may leave our code anywhere. So a turn also
ends when the object that stands for it dies.
"""

from __future__ import annotations

import _thread
import weakref

from .channel.ring import ReentrantGuard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


class Turn(object):
    """The caller's turn, which lasts as long as this object; ``thread`` is the caller's."""

    __slots__ = ("__weakref__", "thread")

    def __init__(self) -> None:
        self.thread = _thread.get_ident()


def _nobody() -> Turn | None:
    """Return None, as a dead weak reference does."""
    return None


class Turns(object):
    """Gives one turn at a time; a forked child needs a new object."""

    __slots__ = ("_current", "_guard")

    def __init__(self) -> None:
        self._guard = ReentrantGuard()
        self._current: Callable[[], Turn | None] = _nobody

    def take(self) -> Turn | None:
        """Return the caller's turn, None while there is another."""
        lock = self._guard.take()
        if lock is None:
            return None
        try:
            if self._current() is not None:
                return None
            turn = Turn()
            self._current = weakref.ref(turn)
            return turn
        finally:
            lock.release()

    @property
    def is_of_another_thread(self) -> bool:
        """Whether there is a turn now, of another thread than the calling one."""
        turn = self._current()
        return turn is not None and turn.thread != _thread.get_ident()
