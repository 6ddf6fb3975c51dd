"""Steps outside of functions, sessions and Keras's loops.

These are training steps of eager ops, and direct calls of models and concrete functions. A training
step begins when a gradient tape is entered and ends when an optimizer has applied the gradients.
Calls in between belong to the step. If no optimizer applies the gradients, the step ends when they
are computed.
"""

from __future__ import annotations

import sys
import weakref

from ...formats import layout
from .. import core, native
from ..clock import mono
from ..guard import called_back, guarded
from ..process_events import at_end
from . import call_observer, window
from .function import OPS, key_of, local, no_call, take_pending_kind
from .step import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

    from ..pacing.tracker import Tracker
    from .function import ThreadState
    from .step import CountedStep, Step

_CONTEXT = "tensorflow.python.eager.context"
_FAILED = layout.FLAG_FAILED
_INITIALIZER = "initialize_variables"  # a function of TensorFlow that runs before the first call of another function
_MODEL_METHOD = "predict_on_batch"  # a method of models, but not of other layers
_SYMBOLIC_CLASSES = ("Tensor", "SymbolicTensor")  # class names of symbolic inputs
_KERAS_TENSOR = "KerasTensor"  # end of the class names of Keras's symbolic inputs


class OutermostStep(object):
    """A thread's running step, timed or only counted; no other step begins within it."""

    __slots__ = ("__weakref__", "step", "thread_state")

    def __init__(self, state: ThreadState, kind: int, name: object = None, needs_window: bool = True) -> None:
        self.thread_state = state
        self.step: Step | CountedStep | None = None
        tracker = core.tracker(kind, needs_window)
        state.outermost_call = weakref.ref(self)
        state.update_busy()
        self.step = begin(tracker, 0 if name is None else key_of(name), name, needs_window)

    def cancel(self) -> None:
        """Let the end of this step do nothing."""
        self.step = None

    def leave(self) -> None:
        """Let other steps begin in the thread, even if this one has not ended; idempotent."""
        _leave(self.thread_state, self)

    def end(self, failed: bool, end_ns: int = 0) -> None:
        """End the step, now or at ``end_ns``."""
        self.leave()
        if self.step is not None:
            self.step.end(_FAILED if failed else 0, end_ns=end_ns)


def _leave(state: ThreadState, step: object) -> None:
    """Let other steps begin in a thread if ``step`` is its running step."""
    if state.outermost_call() is step:
        state.outermost_call = no_call
        state.update_busy()


def _observe(
    cls: Any,
    name: str,
    callback: Callable[..., object],
    count: int = 1,
    fast_callback: Callable[..., object] | None = None,
    on_failure: Callable[..., object] | None = None,
) -> None:
    if isinstance(cls, type) and name in vars(cls):
        call_observer.observe(cls, name, callback, count, True, fast_callback, on_failure)


def _idle_state() -> ThreadState | None:
    """Return the thread's state; None where no step can begin: in another step or in graph mode."""
    state: ThreadState = local.thread_state
    if state.is_in_step or not sys.modules[_CONTEXT].executing_eagerly():
        return None
    return state


# -- direct calls of models and concrete functions -----------------------------------------------


def patch_layers(module: ModuleType) -> None:
    """Observe calls of models; ``module`` defines the layers of a version of Keras."""
    _observe(vars(module).get("Layer"), "__call__", _model_called, 2)


def _model_called(model: Any, inputs: Any) -> call_observer.EndCallback | None:
    state: ThreadState = local.thread_state
    if state.is_in_step or not hasattr(type(model), _MODEL_METHOD) or _idle_state() is None or _is_symbolic(inputs):
        return None
    return call_observer.EndCallback(OutermostStep(state, layout.CALL, getattr(model, "name", "")).end)


def _is_symbolic(inputs: Any) -> bool:
    """Return whether a model's inputs are symbolic."""
    if isinstance(inputs, dict):
        inputs = list(inputs.values())
    if isinstance(inputs, (list, tuple)):
        return any(_is_symbolic(each) for each in inputs)
    name = type(inputs).__name__
    return name in _SYMBOLIC_CLASSES or name.endswith(_KERAS_TENSOR)


def patch_concrete(module: ModuleType) -> None:
    """Observe direct calls of concrete functions, which ``module`` defines."""
    graphs = _graph_stack()
    fast_callback = None if graphs is None else _call_counter(graphs)
    # In some versions the coordinator of parameter servers bypasses ``__call__``.
    _observe(
        vars(module).get("ConcreteFunction"),
        "_call_impl",
        _function_called,
        fast_callback=fast_callback,
        on_failure=None if graphs is None else _failed_calls(),
    )


def _graph_stack() -> Any:
    """Return TensorFlow's stack of the graphs that the calling thread builds, None if unknown.

    As in `function.py`, an empty stack means eager execution.
    """
    graphs = getattr(sys.modules.get(OPS), "_default_graph_stack", None)
    return graphs if hasattr(graphs, "stack") else None


def _failed_calls() -> Callable[[Any], None]:
    """Return the handler of failures of concrete functions, for calls that were only counted.

    Failures of timed calls, and of calls that are no steps, are not reported here. The handler
    repeats the test of the call's start, whose result is the same until its end.
    """
    tracker = core.tracker(layout.FUNCTION)

    def on_failure(function: Any) -> None:
        name = _name_of(function)
        if name != _INITIALIZER and _idle_state() is not None:
            tracker.put_last_failed(key_of(name))

    return called_back(on_failure)


def _call_counter(graphs: Any) -> Callable[[Any], object]:
    """Return a callback that counts a call, or calls `_function_called` if it is to be timed."""
    tracker = core.tracker(layout.FUNCTION)
    if native.module is not None:
        counter: Callable[[Any], object] = native.module.concrete_callback(
            tracker.untimed, graphs, local, _INITIALIZER, guarded(_function_called)
        )
        return counter

    # Each call pays for this function, and finds cold caches. So all that it reads lies in one
    # tuple, the default arguments.
    def callback(
        function: Any,
        local: Any = local,
        graphs: Any = graphs,
        tracker: Tracker = tracker,
        get_attribute: Callable[[Any, str, None], Any] = getattr,
        initializer: str = _INITIALIZER,
        begin: Callable[[Any], object] = guarded(_function_called),
    ) -> object:
        state = local.thread_state
        if state.is_busy or state.pending_kind or graphs.stack:
            return begin(function)
        if get_attribute(get_attribute(function, "_func_graph", None), "name", None) != initializer:
            for _ in tracker.untimed:
                return None
        return begin(function)

    return callback


def patch_old_functions(cls: Any) -> None:
    """Observe calls of functions of ``cls``, in a TensorFlow that does not annotate such calls."""
    _observe(cls, "__call__", _function_called)


def _name_of(function: Any) -> object:
    return getattr(getattr(function, "_func_graph", None), "name", None) or getattr(function, "_name", "")


def _function_called(function: Any) -> call_observer.EndCallback | None:
    state: ThreadState = local.thread_state
    if state.is_in_step:
        window.add_function({"self": function})
        return None
    name = _name_of(function)
    if name == _INITIALIZER or _idle_state() is None:
        return None
    call = OutermostStep(state, take_pending_kind(), name)
    window.add_function({"self": function})
    return call_observer.EndCallback(call.end)


# -- training steps of eager ops -----------------------------------------------------------------


class TapeStep(OutermostStep):
    """A training step; ``is_recording`` is true until ``tape`` is left.

    ``end_ns`` is the time when the tape was left or, later, when the gradients were computed (ns).
    """

    __slots__ = ("end_ns", "is_recording", "tape")

    def __init__(self, state: ThreadState, kind: int, tape: Any) -> None:
        self.tape = weakref.ref(tape)
        self.is_recording = True
        self.end_ns = 0
        super().__init__(state, kind)
        at_end(_at_exit)

    def has_stopped(self) -> bool:
        """Return whether the tape has stopped recording."""
        return not self.is_recording or self.tape() is None

    def note_gradients(self, _failed: bool) -> None:
        """Record the time at which the gradients were computed."""
        self.end_ns = mono()

    def end(self, failed: bool, end_ns: int = 0) -> None:
        """End the step, now or at ``end_ns``."""
        if self.thread_state.tape_step is self:
            self.thread_state.tape_step = None
        super().end(failed, end_ns)


class PythonTapeFields(object):
    """The fields of `CountedTapeStep`, where the shim's C part is missing."""

    __slots__ = ("is_recording", "ordinal", "reference", "tape", "tracker")


if TYPE_CHECKING:
    TapeFields = PythonTapeFields
else:
    TapeFields = PythonTapeFields if native.module is None else native.module.CountedFields


class CountedTapeStep(TapeFields):
    """A training step of the calling thread that is only counted.

    C code uses the object again for the thread's next step, unless something else refers to it.
    """

    __slots__ = ("__weakref__",)

    end_ns = 0
    step = None

    def __init__(self, state: ThreadState, tracker: Tracker, ordinal: int, tape: Any) -> None:
        self.tracker: Tracker | None = tracker
        self.ordinal = ordinal
        self.tape = weakref.ref(tape)
        self.is_recording = True
        self.reference = weakref.ref(self)
        state.outermost_call = self.reference
        state.is_busy = True
        state.counted_step = self

    def cancel(self) -> None:
        """Let the end of this step do nothing."""
        self.tracker = None

    def has_stopped(self) -> bool:
        """Return whether the tape has stopped recording."""
        return not self.is_recording or self.tape() is None

    def note_gradients(self, _failed: bool) -> None:
        """Do nothing: the time of the gradients does not matter."""

    def leave(self) -> None:
        """Let other steps begin in the thread, even if this one has not ended; idempotent."""
        _leave(local.thread_state, self)

    def end(self, failed: bool, end_ns: int = 0) -> None:
        """End the step; its time does not matter."""
        del end_ns
        state: ThreadState = local.thread_state
        if state.tape_step is self:
            state.tape_step = None
        self.leave()
        if failed and self.tracker is not None:
            self.tracker.put_failed(self.ordinal, 0)


def patch_tape(module: ModuleType) -> None:
    """Observe gradient tapes, which ``module`` defines."""
    tape, graphs = vars(module).get("GradientTape"), _graph_stack()
    entry_callback, exit_callback, gradient_callback = _tape_callbacks(graphs)
    _observe(tape, "__enter__", _tape_entered, fast_callback=entry_callback)
    _observe(tape, "__exit__", _tape_left, 2, fast_callback=exit_callback)
    _observe(tape, "gradient", _gradient_called, fast_callback=gradient_callback)


def _tape_callbacks(graphs: Any) -> tuple[Callable[..., object] | None, ...]:
    """Return the fast callbacks of a tape's entry, exit and gradient."""
    entered, left, gradient_called = guarded(_tape_entered), guarded(_tape_left), guarded(_gradient_called)
    if graphs is None:
        return None, _tape_exit_callback(left), _gradient_callback(gradient_called)
    if native.module is None:
        return _tape_entry_callback(graphs, entered), _tape_exit_callback(left), _gradient_callback(gradient_called)
    tracker = core.tracker(layout.EAGER)
    callbacks: tuple[Callable[..., object], ...] = native.module.tape_callbacks(
        tracker.untimed,
        graphs,
        local,
        tracker,
        CountedTapeStep,
        no_call,
        entered,
        left,
        gradient_called,
    )
    return callbacks


# Where the shim's C part is missing, each counted step pays for the callbacks that the next three
# functions return, and finds cold caches. So the callbacks call as little as possible, and all that
# they read lies in one tuple.


def _tape_entry_callback(graphs: Any, begin: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a callback that counts the step of a tape, or calls ``begin`` to time it."""
    tracker = core.tracker(layout.EAGER)

    def callback(
        tape: Any,
        local: Any = local,
        graphs: Any = graphs,
        tracker: Tracker = tracker,
        step_class: type[CountedTapeStep] = CountedTapeStep,
        begin: Callable[[Any], object] = begin,
    ) -> object:
        state = local.thread_state
        previous = state.tape_step
        if (
            state.outermost_call() in (None, previous)
            and (previous is None or (type(previous) is step_class and not previous.is_recording))
            and not (state.keras_calls or state.pending_kind or graphs.stack)
        ):
            for ordinal in tracker.untimed:
                if previous is not None:
                    state.are_gradients_applied = False  # no optimizer ended the previous step
                state.tape_step = step_class(state, tracker, ordinal, tape)
                return None
        return begin(tape)

    return callback


def _tape_exit_callback(leave: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    """Return a callback for exits of tapes; ``leave`` handles those of timed and failed steps."""

    def callback(
        tape: Any,
        error: Any,
        local: Any = local,
        step_class: type[CountedTapeStep] = CountedTapeStep,
        no_call: Any = no_call,
        leave: Callable[[Any, Any], object] = leave,
    ) -> object:
        state = local.thread_state
        tape_step = state.tape_step
        if type(tape_step) is not step_class or error is not None or tape_step.tape() is not tape:
            return leave(tape, error)
        tape_step.is_recording = False
        if not state.are_gradients_applied and state.outermost_call() is tape_step:
            state.outermost_call = no_call
            state.is_busy = bool(state.keras_calls)
        return None

    return callback


def _gradient_callback(gradient_called: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a callback for gradients of tapes; ``gradient_called`` handles timed steps."""

    def callback(
        tape: Any,
        local: Any = local,
        untimed_types: tuple[Any, ...] = (CountedTapeStep, type(None)),
        gradient_called: Callable[[Any], object] = gradient_called,
    ) -> object:
        return None if type(local.thread_state.tape_step) in untimed_types else gradient_called(tape)

    return callback


def _tape_entered(tape: Any) -> None:
    state: ThreadState = local.thread_state
    tape_step = state.tape_step
    if tape_step is not None and tape_step.has_stopped() and state.outermost_call() in (None, tape_step):
        state.are_gradients_applied = False  # no optimizer ended this step
        tape_step.end(False, tape_step.end_ns)
    if state.tape_step is None and _idle_state() is not None:
        kind = take_pending_kind(layout.EAGER)
        tracker = core.tracker(kind)
        for ordinal in tracker.untimed:
            state.tape_step = CountedTapeStep(state, tracker, ordinal, tape)
            return
        state.tape_step = TapeStep(state, kind, tape)


def _tape_left(tape: Any, error: Any) -> None:
    state: ThreadState = local.thread_state
    tape_step = state.tape_step
    if tape_step is None or tape_step.tape() is not tape:
        return
    if error is not None:
        tape_step.end(True)
        return
    tape_step.is_recording, tape_step.end_ns = False, mono()
    if not state.are_gradients_applied:
        tape_step.leave()


def _gradient_called(_tape: Any) -> call_observer.EndCallback | None:
    state: ThreadState = local.thread_state
    tape_step = state.tape_step
    if tape_step is None or not tape_step.has_stopped() or state.are_gradients_applied:
        return None
    return call_observer.EndCallback(tape_step.note_gradients)


def patch_optimizer(module: ModuleType) -> None:
    """Observe optimizers that apply gradients; ``module`` defines them."""
    for cls in list(vars(module).values()):
        if isinstance(cls, type) and cls.__module__ == module.__name__:
            for name in ("apply_gradients", "apply"):
                _observe(cls, name, _optimizer_called)


def _optimizer_called(optimizer: Any) -> call_observer.EndCallback | None:
    state: ThreadState = local.thread_state
    tape_step = state.tape_step
    if state.is_applying or state.keras_calls or state.outermost_call() not in (None, tape_step):
        return None
    if not sys.modules[_CONTEXT].executing_eagerly():
        return None
    step = _begin_without_tape(state, id(optimizer)) if tape_step is None else tape_step
    if step is tape_step:
        state.optimizer_history = (_function_call_count(), [id(optimizer)])
    end_callback = call_observer.EndCallback(lambda failed: _optimizer_ended(state, step, failed))
    state.is_applying = True
    return end_callback


def _begin_without_tape(state: ThreadState, optimizer_id: int) -> OutermostStep | None:
    """Begin a step of an optimizer that applies gradients without a tape, and return it.

    Return None if the gradients came from a function call, or if they belong to a step that another
    optimizer has ended.
    """
    call_count, optimizer_ids = state.optimizer_history
    if call_count != _function_call_count():
        state.optimizer_history = (_function_call_count(), [])
        return None
    if optimizer_ids and optimizer_id not in optimizer_ids:
        optimizer_ids.append(optimizer_id)
        return None
    state.optimizer_history = (call_count, [optimizer_id])
    return OutermostStep(state, layout.EAGER)


def _function_call_count() -> int:
    """Return the number of function calls that were steps so far."""
    tracker = core.tracker(layout.FUNCTION)
    count: int = tracker.words[tracker.count_at]
    return count


def _optimizer_ended(state: ThreadState, step: OutermostStep | CountedTapeStep | None, failed: bool) -> None:
    state.is_applying = False
    if step is not None:
        state.are_gradients_applied = True
        step.end(failed)


def _at_exit() -> None:
    """At the end of the process, end a training step whose gradients were never applied."""
    tape_step = local.thread_state.tape_step
    if tape_step is not None and tape_step.has_stopped():
        tape_step.end(False, tape_step.end_ns)
