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
from .. import core, native
from ..guard import guarded
from ..process_events import in_child
from . import window
from .step import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

    from ..pacing.tracker import Tracker
    from .eager_steps import CountedTapeStep, TapeStep
    from .keras import KerasCall
    from .step import CountedStep, Step

_CONTEXT = "tensorflow.python.eager.context"
OPS = "tensorflow.python.framework.ops"
#: Names that ``__init__`` and ``__exit__`` of TensorFlow's annotation use in known versions.
_INIT_NAMES, _EXIT_NAMES = {"enabled", "_traceme"}, {"_traceme", "Stop"}
_DEPTH_MAX = 32  # maximum frames between a function and the Keras method whose batch it runs


class _NoCall(object):
    """An object that is deleted at once."""


#: The reference to no call: a dead weak reference.
no_call: Callable[[], object] = weakref.ref(_NoCall())


class PythonThreadFields(object):
    """The fields of `ThreadState`, where the shim's C part is missing."""

    __slots__ = (
        "are_gradients_applied",
        "counted_step",
        "is_applying",
        "keras_calls",
        "optimizer_history",
        "outermost_call",
        "tape_step",
    )


if TYPE_CHECKING:
    ThreadFields = PythonThreadFields
else:
    ThreadFields = PythonThreadFields if native.module is None else native.module.ThreadFields


class ThreadState(ThreadFields):
    """A thread's open Keras calls (outermost first), outermost measured call and training step."""

    __slots__ = ()

    def __init__(self) -> None:
        self.keras_calls: list[KerasCall] = []
        #: a weak reference: a call whose annotation is deleted without being left counts as ended
        self.outermost_call: Callable[[], object] = no_call
        self.tape_step: TapeStep | CountedTapeStep | None = None  # the current training step
        #: the thread's last training step that was only counted; C code uses the object again
        self.counted_step: CountedTapeStep | None = None
        self.are_gradients_applied = False  # whether an optimizer applied the last gradients that a tape recorded
        self.is_applying = False  # whether an optimizer is applying gradients now
        #: the number of function calls at the last training step, and the ids of the optimizers
        #: that have applied gradients since
        self.optimizer_history: tuple[int, list[int]] = (0, [])

    @property
    def is_in_call(self) -> bool:
        """Whether the thread is in a measured call."""
        return self.outermost_call() is not None

    def forget(self) -> None:
        """Forget the parent's steps in a forked child: the parent counts them."""
        for step in (self.outermost_call(), self.tape_step):
            cancel = getattr(step, "cancel", None)
            if cancel is not None:
                cancel()
        self.keras_calls = []
        self.outermost_call, self.tape_step = no_call, None
        self.are_gradients_applied = self.is_applying = False

    def update_busy_threads(self) -> None:
        """Add this thread to ``busy_threads`` or remove it."""
        if self.keras_calls or self.is_in_call:
            busy_threads.add(self)
        else:
            busy_threads.discard(self)


#: Threads in a measured call or a Keras call, where a call may be part of another step. While there
#: are any, each call checks its own thread's state.
busy_threads: set[ThreadState] = set()
#: Thread id -> (kind, code): span kind of the thread's next outermost call, if ``code``, a method
#: of Keras, is among the callers.
pending_kinds: dict[int, tuple[int, types.CodeType]] = {}


class ThreadLocal(_thread._local):
    """The calling thread's ``thread_state``."""

    def __init__(self) -> None:
        self.thread_state = ThreadState()


local = ThreadLocal()


def patch(module: ModuleType) -> None:
    """Observe calls of functions; ``module`` defines them.

    In versions without the annotation, calls of the class of functions are observed, if ``module``
    defines this class.
    """
    in_child(_after_fork)
    trace = getattr(module, "trace", None)
    if isinstance(getattr(trace, "Trace", None), type):
        core.replace(module, "trace", _observed_trace)
    elif getattr(vars(module).get("Function"), "__module__", None) == module.__name__:
        from . import eager_steps

        eager_steps.patch_old_functions(vars(module)["Function"])


def _observed_trace(original: ModuleType) -> ModuleType:
    """Return a copy of the module ``original`` whose annotation reports function calls to us."""
    module_copy = types.ModuleType(original.__name__, original.__doc__)
    module_copy.__dict__.update(original.__dict__)
    tracker = core.tracker(layout.FUNCTION)
    base = vars(original)["Trace"]
    measured_class = _measured_class(base, tracker)
    graphs = getattr(sys.modules.get(OPS), "_default_graph_stack", None)
    is_known = (
        hasattr(graphs, "stack") and _names(base.__init__) >= _INIT_NAMES and _names(base.__exit__) == _EXIT_NAMES
    )
    vars(module_copy)["Trace"] = (
        _annotation_factory(original, tracker, measured_class, graphs) if is_known else measured_class
    )
    return module_copy


def _names(function: Any) -> set[str]:
    """Return the names of attributes and globals that a Python function uses."""
    code = getattr(function, "__code__", None)
    return set() if code is None else set(code.co_names)


def _annotation_factory(
    original: Any, tracker: Tracker, measured_class: Callable[..., object], graphs: Any
) -> Callable[..., object]:
    """Return the factory of annotations; calls that are only counted share one annotation.

    ``graphs`` is TensorFlow's stack of the graphs that the calling thread builds; a call within one
    is not a step.
    """
    # ``enabled`` is a function or, in other versions, a variable.
    enabled = original.enabled if callable(original.enabled) else partial(vars(original).__getitem__, "enabled")

    inert_annotation = _inert_annotation(original.Trace, tracker)
    count_call = _call_counter(inert_annotation)

    # Where the shim's C part is missing, every call pays for this function, so it creates and keeps
    # nothing. TensorFlow evicts the caches between two calls, so each object that is read costs as
    # much as ten instructions. All these objects lie in one tuple, the default arguments.
    # ``untimed`` is filled only after an eager call, so an empty stack of graphs means eager
    # execution.
    def Trace(  # noqa: N802 - it replaces the class
        name: str,
        busy_threads: set[ThreadState] = busy_threads,
        graphs: Any = graphs,
        is_recording: Callable[[], bool] = enabled,
        tracker: Tracker = tracker,
        inert_annotation: object = inert_annotation,
        pending_kinds: dict[int, Any] = pending_kinds,
        **kwargs: Any,
    ) -> object:
        if not busy_threads and not kwargs and not graphs.stack and not is_recording():
            if pending_kinds:
                annotation = count_call()
                if annotation is not None:
                    return annotation
            else:
                for _ in tracker.untimed:
                    return inert_annotation
        return measured_class(name, **kwargs)

    if native.module is None:
        return Trace
    factory: Callable[..., object] = native.module.annotation_factory(
        tracker.untimed, busy_threads, pending_kinds, graphs, local, enabled, inert_annotation, Trace
    )
    return factory


def _call_counter(inert_annotation: Any) -> Callable[[], object]:
    """Return a function that counts a call, which may be a batch.

    That function returns the annotation of the call's kind. This is ``inert_annotation`` if the
    call is not a batch. It returns None if the call is to be timed.
    """
    annotations: dict[int, Any] = {layout.FUNCTION: inert_annotation}

    @guarded
    def annotate(kind: int) -> object:
        return annotations.setdefault(kind, _inert_annotation(type(inert_annotation).__base__, core.tracker(kind)))

    def count(
        pending_kinds: dict[int, Any] = pending_kinds,
        get_ident: Callable[[], int] = _thread.get_ident,
        annotations: dict[int, Any] = annotations,
    ) -> object:
        kind, code = pending_kinds.get(get_ident()) or (layout.FUNCTION, None)
        if code is not None and not _is_called_by(sys._getframe(2), code):
            kind = layout.FUNCTION
        annotation: Any = annotations.get(kind) or annotate(kind)
        if annotation is not None:
            tracker = annotation.tracker
            for _ in tracker.untimed:
                pending_kinds.pop(get_ident(), None)
                return annotation
        return None

    return count


def _inert_annotation(base: Any, tracker: Tracker) -> object:
    """Return an annotation that is not recorded and serves any number of calls at once.

    No profiler session is active when such a call begins, so no window needs its function.
    """

    class Inert(base):  # type: ignore[misc]  # known at run time only
        """TensorFlow's annotation, for calls that are only counted."""

        _traceme = None

        def __exit__(self, exc_type: object, value: object, trace: object) -> None:
            if exc_type is not None:
                _put_last_failed(tracker, sys._getframe(1).f_locals.get("self"))

    Inert.tracker = tracker
    return object.__new__(_named_like(Inert, base))


def _measured_class(base: Any, tracker: Tracker) -> Callable[..., object]:  # noqa: C901 - one class, for its cost
    base_init, base_exit = base.__init__, base.__exit__
    executing_eagerly = sys.modules[_CONTEXT].executing_eagerly

    class Measured(base):  # type: ignore[misc]  # known at run time only
        """TensorFlow's annotation, which also reports to us when it is created and left."""

        _step: Any = None  # the step, or its ordinal if it is only counted; None if the call is not a step

        def __init__(self, name: str, **kwargs: Any) -> None:
            base_init(self, name, **kwargs)
            state: ThreadState = local.thread_state
            if state.is_in_call:
                return
            state.outermost_call = weakref.ref(self)
            busy_threads.add(state)
            if not state.keras_calls and executing_eagerly():
                if _thread.get_ident() not in pending_kinds:
                    for ordinal in tracker.untimed:
                        self._step = ordinal
                        return
                self._step = _begin(name)

        def __exit__(self, exc_type: object, value: object, trace: object) -> object:
            result = base_exit(self, exc_type, value, trace)
            state: ThreadState = local.thread_state
            if state.outermost_call() is self:
                state.outermost_call = no_call
                state.update_busy_threads()
                if window.current is not None:
                    window.add_function(sys._getframe(1).f_locals)
                step = self._step
                if type(step) is int:
                    if exc_type is not None:
                        _put_failed(tracker, step, sys._getframe(1).f_locals.get("self"))
                elif step is not None:
                    _end(step, exc_type)
            elif window.current is not None and not isinstance(state.outermost_call(), base):
                window.add_function(sys._getframe(1).f_locals)
            return result

    cls: Callable[..., object] = _named_like(Measured, base)
    return cls


def _named_like(cls: Any, base: Any) -> Any:
    """Return the class ``cls`` with the names of ``base``."""
    cls.__name__, cls.__qualname__, cls.__module__ = base.__name__, base.__qualname__, base.__module__
    return cls


def key_of(name: object) -> int:
    """Return the span key of calls of the function ``name``."""
    return zlib.crc32(str(name).encode())


@guarded
def _put_last_failed(tracker: Tracker, function: object) -> None:
    tracker.put_last_failed(_key_of_call(tracker, function))


@guarded
def _put_failed(tracker: Tracker, ordinal: int, function: object) -> None:
    tracker.put_failed(ordinal, _key_of_call(tracker, function))


def _key_of_call(tracker: Tracker, function: object) -> int:
    return key_of(getattr(function, "_name", "")) if tracker.kind == layout.FUNCTION else 0


@guarded
def _begin(name: object) -> Step | CountedStep:
    kind = take_pending_kind()
    tracker = core.tracker(kind)
    return begin(tracker, key_of(name), name) if kind == layout.FUNCTION else begin(tracker)


def take_pending_kind(default: int = layout.FUNCTION) -> int:
    """Return the kind set for the calling thread's next call and clear it.

    Return ``default`` if no kind was set, or if it was set for another call.
    """
    pending = pending_kinds.pop(_thread.get_ident(), None)
    if pending is None:
        return default
    kind, code = pending
    return kind if _is_called_by(sys._getframe(1), code) else default


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


def _after_fork() -> None:
    """Forget all threads' steps in a forked child, where only the calling thread goes on."""
    busy_threads.clear()
    pending_kinds.clear()
    local.thread_state.forget()
