"""Outermost calls of tf.function as steps, observed through TensorFlow's trace annotation.

The call itself enters and leaves the annotation: nothing of ours is on the stack while the function
runs or is traced.
"""

from __future__ import annotations

import _thread
import sys
import types
import weakref
import zlib
from functools import partial

from ...formats import layout
from .. import core
from ..guard import guarded
from ..process_events import in_child
from . import window
from .step import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

    from ..pacing.tracker import Tracker
    from .eager_steps import TapeStep
    from .keras import KerasCall
    from .step import CountedStep, Step

_CONTEXT = "tensorflow.python.eager.context"
OPS = "tensorflow.python.framework.ops"
#: Names that TensorFlow's annotation uses at its creation and exit when it does nothing else.
_BEGINS, _ENDS = {"enabled", "_traceme"}, {"_traceme", "Stop"}
_DEPTH_MAX = 32  # maximum frames between a function and the Keras method whose batch it runs


class _NoCall(object):
    """An object that is deleted at once."""


#: The reference to no call: a dead one.
no_call: Callable[[], object] = weakref.ref(_NoCall())


class ThreadState(object):
    """One thread's open ``keras_calls``, outermost first, and its ``outermost`` measured call."""

    __slots__ = ("applies", "applying", "keras_calls", "optimizers", "outermost", "taped")

    def __init__(self) -> None:
        self.keras_calls: list[KerasCall] = []
        #: a weak reference, so that a call whose annotation is never entered does not count
        self.outermost: Callable[[], object] = no_call
        self.taped: TapeStep | None = None  # the current training step
        self.applies = False  # whether an optimizer applied the last gradients that a tape recorded
        self.applying = False  # whether an optimizer is applying gradients now
        #: the number of function calls at the last training step, and the ids of the optimizers
        #: that have applied gradients since
        self.optimizers: tuple[int, list[int]] = (0, [])

    @property
    def calling(self) -> bool:
        """Whether the thread is in a measured call."""
        return self.outermost() is not None

    def forget(self) -> None:
        """Forget the parent's steps in a forked child: the parent counts them."""
        for step in (self.outermost(), self.taped):
            cancel = getattr(step, "cancel", None)
            if cancel is not None:
                cancel()
        self.keras_calls = []
        self.outermost, self.taped = no_call, None
        self.applies = self.applying = False

    def changed(self) -> None:
        """Update ``inside``: it holds the threads in which a call may be part of another step."""
        if self.keras_calls or self.calling:
            inside.add(self)
        else:
            inside.discard(self)


#: Threads within a measured call or a Keras call. While there are any, each call checks its own
#: thread's state.
inside: set[ThreadState] = set()
#: By thread, (kind, code): span kind of the next outermost call if ``code``, a method of Keras, is
#: among its callers.
pending_kinds: dict[int, tuple[int, types.CodeType]] = {}


class ThreadLocal(_thread._local):
    """The calling thread's ``thread_state``."""

    def __init__(self) -> None:
        self.thread_state = ThreadState()


local = ThreadLocal()


def patch(module: ModuleType) -> None:
    """Observe calls of functions; ``module`` defines them.

    In versions without the annotation the functions themselves are patched.
    """
    in_child(_forked)
    trace = getattr(module, "trace", None)
    if isinstance(getattr(trace, "Trace", None), type):
        core.replace(module, "trace", _annotating)
    elif (
        getattr(vars(module).get("Function"), "__module__", None) == module.__name__
    ):  # another module's own annotation is not replaced
        from . import eager_steps

        eager_steps.patch_old_functions(vars(module)["Function"])


def _annotating(original: ModuleType) -> ModuleType:
    """Return a copy of the module ``original`` with an annotation that reports its calls."""
    ours = types.ModuleType(original.__name__, original.__doc__)
    ours.__dict__.update(original.__dict__)
    tracker = core.tracker(layout.FUNCTION)
    base = vars(original)["Trace"]
    measured = _measured(base, tracker)
    graphs = getattr(sys.modules.get(OPS), "_default_graph_stack", None)
    known = hasattr(graphs, "stack") and _names(base.__init__) >= _BEGINS and _names(base.__exit__) == _ENDS
    vars(ours)["Trace"] = _counting(original, tracker, measured, graphs) if known else measured
    return ours


def _names(function: Any) -> set[str]:
    """Return the names of attributes and globals that a Python function uses."""
    code = getattr(function, "__code__", None)
    return set() if code is None else set(code.co_names)


def _counting(original: Any, tracker: Tracker, measured: Callable[..., object], graphs: Any) -> Callable[..., object]:
    """Return the factory of annotations; calls that are only counted share one.

    ``graphs`` is TensorFlow's stack of the graphs that the calling thread builds; a call within one
    is not a step.
    """
    # ``enabled`` is a function or, in other versions, a variable.
    enabled = original.enabled if callable(original.enabled) else partial(vars(original).__getitem__, "enabled")

    inert = _inert(original.Trace, tracker)
    counted = _counted(inert)

    # Every call pays for this function, so it creates and keeps nothing. TensorFlow evicts the
    # caches between two calls, so each object that is read costs as much as ten instructions. All
    # of them lie in one tuple, the defaults. ``untimed`` is filled only after an eager call, so an
    # empty stack of graphs means eager execution.
    def Trace(  # noqa: N802 - it replaces the class
        name: str,
        inside: set[ThreadState] = inside,
        graphs: Any = graphs,
        recorded: Callable[[], bool] = enabled,
        tracker: Tracker = tracker,
        count_at: int = tracker.count_at,
        inert: object = inert,
        pending_kinds: dict[int, Any] = pending_kinds,
        **kwargs: Any,
    ) -> object:
        if not inside and not kwargs and not graphs.stack and not recorded():
            if pending_kinds:
                annotation = counted()
                if annotation is not None:
                    return annotation
            else:
                for ordinal in tracker.untimed:
                    tracker.words[count_at] = ordinal
                    return inert
        return measured(name, **kwargs)

    return Trace


def _counted(inert: Any) -> Callable[[], object]:
    """Return a function that counts a call, which may be that of a batch's function.

    It returns the call's annotation, which is ``inert`` if the call is not a batch, or None if the
    call is to be timed.
    """
    annotations: dict[int, Any] = {layout.FUNCTION: inert}

    @guarded
    def annotate(kind: int) -> object:
        return annotations.setdefault(kind, _inert(type(inert).__base__, core.tracker(kind)))

    def count(
        pending_kinds: dict[int, Any] = pending_kinds,
        thread: Callable[[], int] = _thread.get_ident,
        annotations: dict[int, Any] = annotations,
    ) -> object:
        kind, code = pending_kinds.get(thread()) or (layout.FUNCTION, None)
        if code is not None and not _is_called_by(sys._getframe(2), code):
            kind = layout.FUNCTION
        annotation: Any = annotations.get(kind) or annotate(kind)
        if annotation is not None:
            tracker = annotation.tracker
            for ordinal in tracker.untimed:
                tracker.words[tracker.count_at] = ordinal
                pending_kinds.pop(thread(), None)
                return annotation
        return None

    return count


def _inert(base: Any, tracker: Tracker) -> object:
    """Return an annotation that is not recorded and can be used by any number of calls at once.

    No profiler session is active when such a call begins, so no window needs its function.
    """

    class Inert(base):  # type: ignore[misc]  # known at run time only
        """TensorFlow's own annotation of calls that are only counted."""

        _traceme = None

        def __exit__(self, kind: object, value: object, trace: object) -> None:
            if kind is not None:
                _last_failed(tracker, sys._getframe(1).f_locals.get("self"))

    Inert.tracker = tracker
    return object.__new__(_named(Inert, base))


def _measured(base: Any, tracker: Tracker) -> Callable[..., object]:  # noqa: C901 - one class, for its cost
    enter, leave = base.__init__, base.__exit__
    executing_eagerly = sys.modules[_CONTEXT].executing_eagerly

    class Measured(base):  # type: ignore[misc]  # known at run time only
        """TensorFlow's own annotation, which reports to us when it is entered and left."""

        _call: Any = None  # the step, or the ordinal of a counted one; None if the call is not a step

        def __init__(self, name: str, **kwargs: Any) -> None:
            enter(self, name, **kwargs)
            here: ThreadState = local.thread_state
            if here.calling:
                return
            here.outermost = weakref.ref(self)
            inside.add(here)
            if not here.keras_calls and executing_eagerly():
                if _thread.get_ident() not in pending_kinds:
                    for ordinal in tracker.untimed:
                        tracker.words[tracker.count_at] = self._call = ordinal
                        return
                self._call = _begin(name)

        def __exit__(self, kind: object, value: object, trace: object) -> object:
            done = leave(self, kind, value, trace)
            here: ThreadState = local.thread_state
            if here.outermost() is self:
                here.outermost = no_call
                here.changed()
                if window.current is not None:
                    window.add_function(sys._getframe(1).f_locals)
                call = self._call
                if type(call) is int:
                    if kind is not None:
                        _failed(tracker, call, sys._getframe(1).f_locals.get("self"))
                elif call is not None:
                    _end(call, kind)
            elif window.current is not None and not isinstance(here.outermost(), base):
                window.add_function(sys._getframe(1).f_locals)
            return done

    made: Callable[..., object] = _named(Measured, base)
    return made


def _named(ours: Any, base: Any) -> Any:
    """Return the class ``ours`` with the names of ``base``."""
    ours.__name__, ours.__qualname__, ours.__module__ = base.__name__, base.__qualname__, base.__module__
    return ours


def key_of(name: object) -> int:
    """Return the span key of calls of the function ``name``."""
    return zlib.crc32(str(name).encode())


@guarded
def _last_failed(tracker: Tracker, function: object) -> None:
    _failed(tracker, tracker.words[tracker.count_at], function)


@guarded
def _failed(tracker: Tracker, ordinal: int, function: object) -> None:
    tracker.put_failed(ordinal, key_of(getattr(function, "_name", "")) if tracker.kind == layout.FUNCTION else 0)


@guarded
def _begin(name: object) -> Step | CountedStep:
    kind = take_pending_kind()
    tracker = core.tracker(kind)
    return begin(tracker, key_of(name), name) if kind == layout.FUNCTION else begin(tracker)


def take_pending_kind(otherwise: int = layout.FUNCTION) -> int:
    """Return the kind set for the calling thread's next call and clear it.

    Return ``otherwise`` if no kind was set, or for another call.
    """
    pending = pending_kinds.pop(_thread.get_ident(), None)
    if pending is None:
        return otherwise
    kind, code = pending
    return kind if _is_called_by(sys._getframe(1), code) else otherwise


def _is_called_by(frame: Any, code: types.CodeType) -> bool:
    """Return whether a function with ``code`` is among the callers of ``frame``."""
    for _ in range(_DEPTH_MAX):
        if frame is None:
            return False
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


@guarded
def _end(step: Step | CountedStep, error: object) -> None:
    step.end(layout.FLAG_FAILED if error is not None else 0)


def _forked() -> None:
    """Forget all threads' steps in a forked child, where only the calling thread goes on."""
    inside.clear()
    pending_kinds.clear()
    local.thread_state.forget()
