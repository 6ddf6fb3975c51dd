"""Outermost calls of tf.function as steps, told by the trace annotation that TensorFlow puts around each.

The annotation is entered and left by the call itself: nothing of ours is on the stack while the function runs or is traced.
"""

from __future__ import annotations

import _thread
import sys
import types
import zlib

from . import core, layout, window
from .guard import guarded
from .step import Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

    from .keras import Bracket

_CONTEXT = "tensorflow.python.eager.context"
_DEEPEST = 32  # frames from a function to the method of Keras's that it is a batch of


class Scope(_thread._local):
    """One thread's place: the ``brackets`` of Keras that are open, outermost first, and the ``depth`` of function calls."""

    def __init__(self) -> None:
        self.brackets: list[Bracket] = []
        self.depth = 0
        #: span kind that the next outermost call is to have if it is made below this code of Keras's
        self.mark: tuple[int, types.CodeType] | None = None
        #: a model, by a weak reference, and the batch that it was given by hand
        self.by_hand: tuple[Callable[[], object], Step] | None = None


scope = Scope()


def patch(module: ModuleType) -> None:
    """Let the calls of functions be told, in TensorFlow's module of them; versions without the annotation are left alone."""
    trace = getattr(module, "trace", None)
    if isinstance(getattr(trace, "Trace", None), type):
        core.replace(module, "trace", _annotating)


def _annotating(original: ModuleType) -> ModuleType:
    """Return a module like ``original`` with an annotation that tells us of the call that it is put around."""
    ours = types.ModuleType(original.__name__, original.__doc__)
    ours.__dict__.update(original.__dict__)
    vars(ours)["Trace"] = _annotation(vars(original)["Trace"])
    return ours


def _annotation(base: Any) -> Any:
    executing_eagerly = sys.modules[_CONTEXT].executing_eagerly

    class Trace(base):  # type: ignore[misc]  # known when TensorFlow is
        """TensorFlow's own annotation, telling us when it is entered and left."""

        def __init__(self, name: str, **kwargs: Any) -> None:
            base.__init__(self, name, **kwargs)
            self._call: Any = name  # from its entry on the step, None where it is none

        def __enter__(self) -> object:
            here = scope
            here.depth += 1
            step = None
            if here.depth == 1 and not here.brackets and executing_eagerly():
                step = _begin(here, self._call)
            self._call = step
            return base.__enter__(self)

        def __exit__(self, kind: object, value: object, trace: object) -> object:
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
def _begin(here: Scope, name: object) -> Step:
    kind = layout.FUNCTION if here.mark is None else _marked(here)
    tracker = core.tracker(kind)
    key = zlib.crc32(str(name).encode()) if kind == layout.FUNCTION else 0
    return Step(tracker, tracker.next(), key, True)


def _marked(here: Scope) -> int:
    """Return the kind that was marked for a call of this function, and take the mark away."""
    assert here.mark is not None
    (kind, code), here.mark = here.mark, None
    frame: Any = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None:
            break
        if frame.f_code is code:
            return kind
        frame = frame.f_back
    return layout.FUNCTION


@guarded
def _end(step: Step, error: object) -> None:
    step.end(layout.FLAG_FAILED if error is not None else 0)
