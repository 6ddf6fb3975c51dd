"""Taps: being told that a method is about to be called without being on the stack while it runs.

A wrapper would show in the job's tracebacks, in the frames that TensorFlow keeps with each op, and in the places that warnings
name. A tap is a descriptor: it is told when the method is looked up on an instance, and hands out the method itself.
"""

from __future__ import annotations

from .guard import stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Tap(object):
    """A method that tells ``note`` of each instance on which it is looked up; ``original`` is what it stands for."""

    __slots__ = ("note", "original")

    def __init__(self, original: Any, note: Callable[[Any], object]) -> None:
        self.original = original
        self.note = note

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is not None:
            try:
                self.note(instance)
            except Exception as error:
                if not stop(error):
                    raise
        return self.original.__get__(instance, owner)
