"""Taps: being told that a method is about to be called without being on the stack while it runs.

A wrapper would show in the job's tracebacks, in the frames that TensorFlow keeps with each op, and in the places that warnings
name. A tap is a descriptor: it is told when the method is looked up on an instance, and hands out the method itself.
"""

from .guard import stop


class Tap(object):
    """A method that tells ``note`` of each instance on which it is looked up; ``original`` is what it stands for."""

    __slots__ = ("note", "original")

    def __init__(self, original, note):
        # type: (object, object) -> None
        self.original = original
        self.note = note

    def __get__(self, instance, owner=None):
        # type: (object, object) -> object
        if instance is not None:
            try:
                self.note(instance)
            except Exception as error:
                if not stop(error):
                    raise
        return self.original.__get__(instance, owner)


def tap(cls, notes):
    # type: (type, dict) -> list
    """Put a tap on the methods of ``cls`` itself that ``notes`` names; return (class, name, original) of those."""
    done = []
    for name, note in notes.items():
        original = cls.__dict__.get(name)
        if original is None or isinstance(original, Tap):
            continue
        setattr(cls, name, Tap(original, note))
        done.append((cls, name, original))
    return done
