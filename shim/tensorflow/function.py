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
from ..weak_table import WeakTable
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


class _NoCall(object):
    """An object that is deleted at once."""


#: The value of ``outermost_call`` while no call runs: a dead weak reference.
no_call: Callable[[], object] = weakref.ref(_NoCall())


class PythonThreadFields(object):
    """The fields of `ThreadState`, where the shim's C part is missing."""

    __slots__ = (
        "are_gradients_applied",
        "counted_step",
        "is_applying",
        "is_busy",
        "keras_calls",
        "optimizer_history",
        "outermost_call",
        "pending_kind",
        "tape_step",
    )


if TYPE_CHECKING:
    ThreadFields = PythonThreadFields
else:
    ThreadFields = PythonThreadFields if native.module is None else native.module.ThreadFields


class ThreadState(ThreadFields):
    """A thread's open Keras calls (outermost first), outermost measured call and training step."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        self.is_busy = False  # if false, ``is_in_step`` is false, too
        self.pending_kind = 0  # span kind of the next outermost call; 0: it follows from the call
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

    @property
    def is_in_step(self) -> bool:
        """Whether the thread is in a measured call or a Keras call: a call may be part of it."""
        return bool(self.keras_calls) or self.is_in_call

    def forget(self) -> None:
        """Forget the parent's steps in a forked child: the parent counts them."""
        for step in (self.outermost_call(), self.tape_step):
            cancel = getattr(step, "cancel", None)
            if cancel is not None:
                cancel()
        self.keras_calls = []
        self.outermost_call, self.tape_step = no_call, None
        self.pending_kind = 0
        self.are_gradients_applied = self.is_applying = self.is_busy = False

    def update_busy(self) -> None:
        """Update ``is_busy`` after a call has begun or ended."""
        self.is_busy = self.is_in_step


_thread_states = WeakTable()  # the states of all threads that have one


class ThreadLocal(_thread._local):
    """The calling thread's ``thread_state``."""

    def __init__(self) -> None:
        self.thread_state = ThreadState()
        _thread_states.set(self.thread_state)


local = ThreadLocal()


def is_other_thread_in_call() -> bool:
    """Return whether a thread other than the calling one is in a measured call or a Keras call."""
    state = local.thread_state
    return any(other is not state and other.is_in_step for other in _thread_states.existing())


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
    """Return the factory of annotations.

    Calls of one kind that are only counted share one annotation. ``graphs`` is TensorFlow's stack
    of the graphs that the calling thread builds; a call within one is not a step.
    """
    # ``enabled`` is a function or, in other versions, a variable.
    enabled = original.enabled if callable(original.enabled) else partial(vars(original).__getitem__, "enabled")
    inert_annotation = _inert_annotation(original.Trace, tracker)

    # Where the shim's C part is missing, every call pays for this function, so it creates and keeps
    # nothing. TensorFlow evicts the caches between two calls, so each object that is read costs as
    # much as ten instructions. All these objects lie in one tuple, the default arguments.
    # ``untimed`` is filled only after an eager call, so an empty stack of graphs means eager
    # execution.
    def Trace(  # noqa: N802 - it replaces the class
        name: str,
        local: Any = local,
        graphs: Any = graphs,
        is_recording: Callable[[], bool] = enabled,
        tracker: Tracker = tracker,
        inert_annotation: object = inert_annotation,
        **kwargs: Any,
    ) -> object:
        state = local.thread_state
        if not state.is_busy and not kwargs and not graphs.stack and not is_recording():
            if state.pending_kind:
                annotation = count_batch(state)
                if annotation is not None:
                    return annotation
            else:
                for _ in tracker.untimed:
                    return inert_annotation
        return measured_class(name, **kwargs)

    factory: Callable[..., object] = Trace
    if native.module is not None:
        factory = native.module.annotation_factory(tracker.untimed, graphs, local, enabled, inert_annotation, Trace)
    count_batch = _batch_counter(original.Trace, factory)
    return factory


def _batch_counter(base: Any, factory: Any) -> Callable[[ThreadState], object]:
    """Return a function that counts a call that is a batch, and returns the annotation of its kind.

    It returns None if the call is to be timed. ``factory`` counts further batches of the kind if it
    is written in C. ``base`` is TensorFlow's class of annotations.
    """
    annotations: dict[int, Any] = {}

    def add_kind(kind: int) -> object:
        annotation: Any = _inert_annotation(base, core.tracker(kind))
        annotations[kind] = annotation
        if native.module is not None:
            native.module.add_annotation(factory, kind, annotation.tracker.untimed, annotation)
        return annotation

    @guarded
    def count_batch(state: ThreadState) -> object:
        kind = state.pending_kind
        annotation: Any = annotations.get(kind) or add_kind(kind)
        for _ in annotation.tracker.untimed:
            state.pending_kind = 0
            return annotation
        return None

    return count_batch


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
            state.is_busy = True
            if not state.keras_calls and executing_eagerly():
                if not state.pending_kind:
                    for ordinal in tracker.untimed:
                        self._step = ordinal
                        return
                self._step = _begin(name)

        def __exit__(self, exc_type: object, value: object, trace: object) -> object:
            result = base_exit(self, exc_type, value, trace)
            state: ThreadState = local.thread_state
            if state.outermost_call() is self:
                state.outermost_call = no_call
                state.update_busy()
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
    """Return the kind set for the calling thread's next call and clear it; default: ``default``."""
    state = local.thread_state
    kind, state.pending_kind = state.pending_kind, 0
    return kind or default


@guarded
def _end(step: Step | CountedStep, error: object) -> None:
    step.end(layout.FLAG_FAILED if error is not None else 0)


def _after_fork() -> None:
    """Forget all threads' steps in a forked child, where only the calling thread goes on."""
    _thread_states.clear()
    _thread_states.set(local.thread_state)
    local.thread_state.forget()
