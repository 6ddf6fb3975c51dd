"""Steps outside of functions, sessions and Keras's loops.

These are training steps of eager ops, and direct calls of models. A training step begins when a
gradient tape is entered and ends when an optimizer has applied the gradients. Calls in between
belong to the step. If no optimizer applies the gradients, the step ends when they are computed.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any
from weakref import ref

from ...formats import layout
from .. import core
from ..clock import identity, mono
from ..guard import is_of_framework, of_job
from ..process_events import at_end
from ..steps import observer
from ..steps.step import OutermostStep, Step
from ..steps.thread_state import ThreadState, local

_CONTEXT = "tensorflow.python.eager.context"
_LOOPS = ("fit", "evaluate", "predict", "fit_generator", "evaluate_generator", "predict_generator")
_MODEL_METHOD = "predict_on_batch"  # a method of models, but not of other layers
_SYMBOLIC_CLASSES = ("Tensor", "SymbolicTensor")  # class names of symbolic inputs
_GREENLETS = "greenlets switch within training steps: steps that begin within another greenlet's are not counted"
_CALLS_MAX = 8  # calls of models between the gradients and the optimizer; after more, none is expected
_KERAS_TENSOR = "KerasTensor"  # end of the class names of Keras's symbolic inputs


def is_eager() -> bool:
    """Return whether the calling thread executes eagerly; False while the module is not loaded."""
    context = sys.modules.get(_CONTEXT)
    return context is not None and bool(context.executing_eagerly())


def idle_state() -> ThreadState | None:
    """Return the thread's state; None in graph mode, in another step, and in an unseen loop."""
    state: ThreadState = local.thread_state
    return None if state.is_in_loop() or state.is_in_step or not is_eager() or is_in_unseen_loop(state) else state


def is_in_unseen_loop(state: ThreadState) -> bool:
    """Return whether the calling thread is in a Keras loop that began before tfprof was attached.

    The loop is known from its next batch on. Until then a call in it is a part of a batch, no step.
    """
    process = core.state()
    if state.was_outside or process is None or not process.is_attached:
        return False
    frame = sys._getframe(1).f_back
    while frame is not None and not (frame.f_code.co_name in _LOOPS and is_of_framework(frame)):
        frame = frame.f_back
    state.was_outside = frame is None
    return frame is not None


# -- direct calls of models ----------------------------------------------------------------------


def patch_layers(module: ModuleType) -> None:
    """Observe calls of models; ``module`` defines the layers of a version of Keras."""
    observer.observe(vars(module).get("Layer"), "__call__", _model_called, 2, observes_end=True)


def _model_called(model: Any, inputs: Any) -> observer.EndCallback | None:
    state: ThreadState = local.thread_state
    if not hasattr(type(model), _MODEL_METHOD):
        return None
    step = state.tape_step
    if step is not None and state.outermost_call() is step and not state.is_applying and is_eager():
        step.count_call()
    if idle_state() is None or _is_symbolic(inputs):
        return None
    return observer.EndCallback(OutermostStep(state, layout.CALL, of_job(getattr, model, "name", "")).end)


def _is_symbolic(inputs: Any) -> bool:
    if isinstance(inputs, dict):
        inputs = list(inputs.values())
    if isinstance(inputs, (list, tuple)):
        return any(_is_symbolic(each) for each in inputs)
    name = type(inputs).__name__
    return name in _SYMBOLIC_CLASSES or name.endswith(_KERAS_TENSOR)


# -- training steps of eager ops -----------------------------------------------------------------


class TapeStep(OutermostStep):
    """A training step; ``is_recording`` is true until ``tape`` is left.

    ``end_ns`` is the time when the tape was left or, later, when the gradients were computed (ns).
    """

    __slots__ = ("calls", "end_ns", "greenlet", "is_recording", "tape")

    def __init__(self, state: ThreadState, kind: int, tape: Any) -> None:
        self.tape = ref(tape)
        self.greenlet = _greenlet()
        self.is_recording = True
        self.calls = self.end_ns = 0
        super().__init__(state, kind)

    def has_stopped(self) -> bool:
        """Return whether the tape has stopped recording."""
        return not self.is_recording or self.tape() is None

    def count_call(self) -> None:
        """Count a call of a model that belongs to the step once the tape has stopped."""
        self.calls += self.has_stopped()
        if self.calls > _CALLS_MAX:
            self.thread_state.end_stopped_step()

    def end(self, failed: bool, end_ns: int = 0) -> None:
        """End the step, now or at ``end_ns``."""
        if self.thread_state.tape_step is self:
            self.thread_state.tape_step = None
        super().end(failed, end_ns)


def patch_tape(module: ModuleType) -> None:
    """Observe gradient tapes, which ``module`` defines."""
    at_end(_at_exit)
    tape = vars(module).get("GradientTape")
    observer.observe(tape, "__enter__", _tape_entered)
    observer.observe(tape, "__exit__", _tape_left, 2)
    observer.observe(tape, "gradient", _gradient_called, observes_end=True)


def _tape_entered(tape: Any) -> None:
    state: ThreadState = local.thread_state
    if state.outermost_call() in (None, state.tape_step):
        state.end_stopped_step()
    if state.tape_step is None and idle_state() is not None:
        state.tape_step = TapeStep(state, state.take_pending_kind(layout.EAGER), tape)
    elif state.tape_step is not None and state.tape_step.greenlet != _greenlet():
        channel = core.tracker(layout.EAGER).channel
        if channel is not None:
            channel.report("greenlet-switch", _GREENLETS, is_unique=True)


def _greenlet() -> int:
    """Return the id of the thread's greenlet, 0 while the job has not imported greenlets."""
    get_current = getattr(sys.modules.get("greenlet"), "getcurrent", None)
    return 0 if get_current is None else identity(of_job(get_current))


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


def _gradient_called(_tape: Any) -> observer.EndCallback | None:
    state: ThreadState = local.thread_state
    tape_step = state.tape_step
    if tape_step is None or not tape_step.has_stopped() or state.are_gradients_applied:
        return None
    # The duration of a step that is only counted does not matter.
    is_timed = type(tape_step.step) is Step
    return observer.EndCallback(lambda _failed: setattr(tape_step, "end_ns", mono())) if is_timed else None


def patch_optimizer(module: ModuleType) -> None:
    """Observe optimizers that apply gradients; ``module`` defines them."""
    for cls in list(vars(module).values()):
        if isinstance(cls, type) and cls.__module__ == module.__name__:
            for name in ("apply_gradients", "apply"):
                observer.observe(cls, name, _optimizer_called, observes_end=True)


def _optimizer_called(_optimizer: Any) -> observer.EndCallback | None:
    """Let the training step end with this call; gradients without a tape belong to no step."""
    state: ThreadState = local.thread_state
    step = state.tape_step
    if step is None or state.is_applying or state.loops or state.outermost_call() not in (None, step) or not is_eager():
        return None
    end_callback = observer.EndCallback(lambda failed: _optimizer_ended(state, step, failed))
    state.is_applying = True
    return end_callback


def _optimizer_ended(state: ThreadState, step: TapeStep, failed: bool) -> None:
    state.is_applying, state.are_gradients_applied = False, True
    step.end(failed)


def _at_exit() -> None:
    """At the end of the process, end a training step whose gradients were never applied."""
    local.thread_state.end_stopped_step()
