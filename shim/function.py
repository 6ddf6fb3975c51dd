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
    from typing import Any, Callable, Iterator

    from .keras import Bracket
    from .tracker import Tracker

_CONTEXT = "tensorflow.python.eager.context"
_DEEPEST = 32  # frames from a function to the method of Keras's that it is a batch of


class Place(object):
    """One thread's place: the ``brackets`` of Keras that are open, outermost first, and the ``depth`` of function calls."""

    __slots__ = ("brackets", "by_hand", "depth", "mark")

    def __init__(self) -> None:
        self.brackets: list[Bracket] = []
        self.depth = 0
        #: span kind that the next outermost call is to have if it is made below this code of Keras's
        self.mark: tuple[int, types.CodeType] | None = None
        #: a model, by a weak reference, and the batch that it was given by hand
        self.by_hand: tuple[Callable[[], object], Step] | None = None


class Scope(_thread._local):
    """The calling thread's ``place``, whose attributes it has as well."""

    place: Place
    brackets: list[Bracket]
    by_hand: tuple[Callable[[], object], Step] | None
    depth: int
    mark: tuple[int, types.CodeType] | None

    def __init__(self) -> None:
        vars(self)["place"] = Place()

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["place"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["place"], name, value)


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


def _annotation(base: Any) -> Any:  # noqa: C901 - one class over plain variables, for its cost
    executing_eagerly = sys.modules[_CONTEXT].executing_eagerly
    initialize, leave = base.__init__, base.__exit__
    tracker = core.tracker(layout.FUNCTION)
    count_at = tracker.count_at

    class Trace(base):  # type: ignore[misc]  # known when TensorFlow is
        """TensorFlow's own annotation, telling us when it is entered and left."""

        _call: Any = None  # the step, or the ordinal of one that is only counted; None where it is none

        def __init__(self, name: str, **kwargs: Any) -> None:
            initialize(self, name, **kwargs)
            here: Place = scope.place  # once: it takes as long as all the rest
            here.depth = depth = here.depth + 1
            self._here = here
            if depth == 1 and not here.brackets and executing_eagerly():
                left = tracker.left
                if here.mark is None:
                    for ordinal in left:
                        tracker.words[count_at] = self._call = ordinal
                        return
                self._call = _begin(here, name, left)

        def __exit__(self, kind: object, value: object, trace: object) -> object:
            done = leave(self, kind, value, trace)
            here = self._here
            here.depth = depth = here.depth - 1
            if not depth:
                if window.current is not None:
                    window.called(sys._getframe(1).f_locals.get("self"))
                call = self._call
                if type(call) is int:
                    if kind is not None:
                        _failed(tracker, call, sys._getframe(1).f_locals.get("self"))
                elif call is not None:
                    _end(call, kind)
            return done

    Trace.__name__, Trace.__qualname__, Trace.__module__ = base.__name__, base.__qualname__, base.__module__
    return Trace


def _key(name: object) -> int:
    return zlib.crc32(str(name).encode())


@guarded
def _failed(tracker: Tracker, ordinal: int, function: object) -> None:
    tracker.failed(ordinal, _key(getattr(function, "_name", "")))


@guarded
def _begin(here: Place, name: object, left: Iterator[int]) -> Step:
    kind = layout.FUNCTION if here.mark is None else _marked(here)
    tracker = core.tracker(kind)
    key = _key(name) if kind == layout.FUNCTION else 0
    return Step(tracker, tracker.next(), key, True, left if kind == layout.FUNCTION else None)


def _marked(here: Place) -> int:
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
