"""Outermost calls of tf.function as steps, told by the trace annotation that TensorFlow puts around each.

The annotation is entered and left by the call itself: nothing of ours is on the stack while the function runs or is traced.
"""

import _thread
import sys
import types
import zlib

from . import core, layout, window
from .guard import guarded
from .step import Step

_CONTEXT = "tensorflow.python.eager.context"


class Scope(_thread._local):
    """One thread's place: the ``brackets`` of Keras that are open, outermost first, and the ``depth`` of function calls."""

    def __init__(self):
        # type: () -> None
        self.brackets = []  # type: list
        self.depth = 0
        self.mark = 0  # span kind that the next outermost call is to have, 0 for its own
        self.by_hand = (None, None)  # model, by a weak reference, and the batch that it was given by hand


scope = Scope()


def patch(module):
    # type: (object) -> None
    """Let the calls of functions be told, in TensorFlow's module of them; versions without the annotation are left alone."""
    trace = getattr(module, "trace", None)
    if isinstance(getattr(trace, "Trace", None), type):
        core.replace(module, "trace", _annotating)


def _annotating(original):
    """Return a module like ``original`` with an annotation that tells us of the call that it is put around."""
    ours = types.ModuleType(original.__name__, original.__doc__)
    ours.__dict__.update(original.__dict__)
    ours.Trace = _annotation(original.Trace)
    return ours


def _annotation(base):
    executing_eagerly = sys.modules[_CONTEXT].executing_eagerly

    class Trace(base):
        """TensorFlow's own annotation, telling us when it is entered and left."""

        def __init__(self, name, **kwargs):
            # type: (str, object) -> None
            base.__init__(self, name, **kwargs)
            self._call = name

        def __enter__(self):
            # type: () -> object
            here = scope
            here.depth += 1
            step = None
            if here.depth == 1 and not here.brackets and executing_eagerly():
                step = _begin(here, self._call)
            self._call = step
            return base.__enter__(self)

        def __exit__(self, kind, value, trace):
            # type: (object, object, object) -> object
            done = base.__exit__(self, kind, value, trace)
            here = scope
            here.depth -= 1
            if here.depth == 0:
                if window.current is not None:
                    window.called(sys._getframe(1).f_locals.get("self"))
                if self._call is not None:
                    _end(self._call, kind)
            return done

    Trace.__name__, Trace.__qualname__, Trace.__module__ = base.__name__, base.__qualname__, base.__module__
    return Trace


@guarded
def _begin(here, name):
    kind, here.mark = here.mark or layout.FUNCTION, 0
    tracker = core.tracker(kind)
    key = zlib.crc32(str(name).encode()) if kind == layout.FUNCTION else 0
    return Step(tracker, tracker.next(), key, True)


@guarded
def _end(step, error):
    step.end(layout.FLAG_FAILED if error is not None else 0)
