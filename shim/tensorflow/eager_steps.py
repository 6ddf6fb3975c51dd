"""Steps outside of functions, sessions and Keras's loops.

These are training steps of eager ops, and direct calls of models and concrete functions. A training
step begins when a gradient tape is entered and ends when an optimizer has applied the gradients.
Calls in between belong to it. If no optimizer applies the gradients, the step ends when they are
computed.
"""

from __future__ import annotations

import sys
import weakref

from ...formats import layout
from .. import core
from ..clock import mono
from ..guard import contain_in_callback, guarded, uninterrupted_start
from ..process_events import at_end
from . import call_observer, window
from .function import OPS, inside, key_of, local, no_call, pending_kinds, take_pending_kind
from .step import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType
    from typing import Any, Callable, Container

    from ..pacing.tracker import Tracker
    from .function import ThreadState
    from .step import CountedStep, Step

_CONTEXT = "tensorflow.python.eager.context"
_FAILED = layout.FLAG_FAILED
_INITIALIZER = "initialize_variables"  # TensorFlow's own function, which runs before the first call of others
_MODEL = "predict_on_batch"  # a method of models, but not of other layers
_SYMBOLIC = ("Tensor", "SymbolicTensor")  # class names of symbolic inputs
_OF_KERAS = "KerasTensor"  # end of the class names of Keras's symbolic inputs
_FROM_END = 4  # frames from an EndCallback to the observed function, if a fast callback called its creator
_RETURNS = call_observer.returns()


class OutermostStep(object):
    """A running step of a thread, timed or only counted; no other step begins inside of it."""

    __slots__ = ("__weakref__", "here", "step")

    def __init__(self, here: ThreadState, kind: int, name: object = None, windows: bool = True) -> None:
        self.here = here
        self.step: Step | CountedStep | None = None
        tracker = core.tracker(kind, windows)
        here.outermost = weakref.ref(self)
        here.changed()
        self.step = begin(tracker, 0 if name is None else key_of(name), name, windows)

    def cancel(self) -> None:
        """Let the end of this step do nothing."""
        self.step = None

    def leave(self) -> None:
        """Let other steps begin in the thread, even if this one has not ended; idempotent."""
        if self.here.outermost() is self:
            self.here.outermost = no_call
            self.here.changed()

    def end(self, failed: bool, ended: int = 0) -> None:
        """End the step, now or at ``ended``."""
        self.leave()
        if self.step is not None:
            self.step.end(_FAILED if failed else 0, ended=ended)


def _observe(
    cls: Any, name: str, callback: Callable[..., object], count: int = 1, fast: Callable[..., object] | None = None
) -> None:
    if isinstance(cls, type) and name in vars(cls):
        call_observer.observe(cls, name, callback, count, ends=True, fast=fast)


def _idle() -> ThreadState | None:
    """Return the thread's state if a step can begin: eager execution, outside of other steps."""
    here: ThreadState = local.thread_state
    if here.calling or here.keras_calls or not sys.modules[_CONTEXT].executing_eagerly():
        return None
    return here


# -- direct calls of models and concrete functions -----------------------------------------------


def patch_layers(module: ModuleType) -> None:
    """Observe calls of models; ``module`` defines the layers of a version of Keras."""
    _observe(vars(module).get("Layer"), "__call__", _model_called, 2)


def _model_called(model: Any, inputs: Any) -> call_observer.EndCallback | None:
    here: ThreadState = local.thread_state
    if here.calling or here.keras_calls or not hasattr(type(model), _MODEL) or _idle() is None or _symbolic(inputs):
        return None
    return call_observer.EndCallback(OutermostStep(here, layout.CALL, getattr(model, "name", "")).end)


def _symbolic(inputs: Any) -> bool:
    """Return whether a model's inputs are symbolic."""
    if isinstance(inputs, dict):
        inputs = list(inputs.values())
    if isinstance(inputs, (list, tuple)):
        return any(_symbolic(each) for each in inputs)
    name = type(inputs).__name__
    return name in _SYMBOLIC or name.endswith(_OF_KERAS)


def patch_concrete(module: ModuleType) -> None:
    """Observe direct calls of concrete functions, which ``module`` defines."""
    graphs = _graphs()
    fast = None if graphs is None else _counting(guarded(_function_called), graphs)
    # In some versions the coordinator of parameter servers bypasses ``__call__``.
    _observe(vars(module).get("ConcreteFunction"), "_call_impl", _function_called, fast=fast)


def _graphs() -> Any:
    """Return TensorFlow's stack of the graphs that the calling thread builds, None if unknown.

    As in `function.py`, an empty stack means eager execution.
    """
    graphs = getattr(sys.modules.get(OPS), "_default_graph_stack", None)
    return graphs if hasattr(graphs, "stack") else None


class _CountedCall(object):
    """A call that is only counted: it reports a failure when it is released."""

    __slots__ = ("frame", "ordinal")

    frame: int  # id of the function's frame
    ordinal: int

    def __del__(
        self,
        getframe: Callable[[int], FrameType] = sys._getframe,
        returns: Container[int] = _RETURNS,
        is_gone_first: bool = call_observer.FRAME_GONE_FIRST,
    ) -> None:
        try:
            frame = getframe(1)
            if id(frame) == self.frame if is_gone_first else frame.f_code.co_code[frame.f_lasti] not in returns:
                key = key_of(_name_of(frame.f_locals.get("self")))
                core.tracker(layout.FUNCTION).put_failed(self.ordinal, key)
        except BaseException:
            contain_in_callback()


uninterrupted_start(_CountedCall.__del__)


def _counting(begin: Callable[[Any, int], object], graphs: Any) -> Callable[[Any], object]:
    """Return a callback that counts a call, or calls ``begin`` if the call is to be timed."""
    tracker = core.tracker(layout.FUNCTION)

    # Each call pays for this function, and finds cold caches. So all that it reads lies in one
    # tuple.
    def callback(
        function: Any,
        inside: set[ThreadState] = inside,
        pending_kinds: dict[int, Any] = pending_kinds,
        graphs: Any = graphs,
        tracker: Tracker = tracker,
        count_at: int = tracker.count_at,
        name_of: Callable[[Any, str, None], Any] = getattr,
        initializer: str = _INITIALIZER,
        counted: Any = _CountedCall,
        is_gone_first: bool = call_observer.FRAME_GONE_FIRST,
        begin: Callable[[Any, int], object] = begin,
    ) -> object:
        if inside or pending_kinds or graphs.stack:
            return begin(function, _FROM_END)
        if name_of(name_of(function, "_func_graph", None), "name", None) != initializer:
            for ordinal in tracker.untimed:
                tracker.words[count_at] = ordinal
                call = counted()
                call.ordinal = ordinal
                call.frame = id(sys._getframe(1)) if is_gone_first else 0
                return call
        return begin(function, _FROM_END)

    return callback


def patch_old_functions(cls: Any) -> None:
    """Observe functions of a version without trace annotations."""
    _observe(cls, "__call__", _function_called)


def _name_of(function: Any) -> object:
    return getattr(getattr(function, "_func_graph", None), "name", None) or getattr(function, "_name", "")


def _function_called(function: Any, frames: int = call_observer.FUNCTION) -> call_observer.EndCallback | None:
    here: ThreadState = local.thread_state
    if here.calling or here.keras_calls:
        window.add_function({"self": function})
        return None
    name = _name_of(function)
    if name == _INITIALIZER or _idle() is None:
        return None
    call = OutermostStep(here, take_pending_kind(), name)
    window.add_function({"self": function})
    return call_observer.EndCallback(call.end, frames)


# -- training steps of eager ops -----------------------------------------------------------------


class TapeStep(OutermostStep):
    """A training step; ``recording`` is true until ``tape`` is left.

    ``ended`` is the time when the tape was left or, later, when the gradients were computed (ns).
    """

    __slots__ = ("ended", "recording", "tape")

    def __init__(self, here: ThreadState, kind: int, tape: Any) -> None:
        self.tape = weakref.ref(tape)
        self.recording = True
        self.ended = 0
        super().__init__(here, kind)
        at_end(_at_exit)

    def has_stopped(self) -> bool:
        """Return whether the tape has stopped recording."""
        return not self.recording or self.tape() is None

    def differentiated(self, _failed: bool) -> None:
        """Record the time at which the gradients were computed."""
        self.ended = mono()

    def end(self, failed: bool, ended: int = 0) -> None:
        """End the step, now or at ``ended``."""
        if self.here.taped is self:
            self.here.taped = None
        super().end(failed, ended)


class CountedTapeStep(TapeStep):
    """A training step that is only counted."""

    __slots__ = ("ordinal", "tracker")

    ended = 0
    step = None

    def __init__(self, here: ThreadState, tracker: Tracker, ordinal: int, tape: Any) -> None:
        self.here = here
        self.tracker: Tracker | None = tracker
        self.ordinal = ordinal
        self.tape = weakref.ref(tape)
        self.recording = True
        inside.add(here)
        here.outermost = weakref.ref(self)

    def cancel(self) -> None:
        """Let the end of this step do nothing."""
        self.tracker = None

    def end(self, failed: bool, ended: int = 0) -> None:
        """End the step; its time does not matter."""
        del ended
        if self.here.taped is self:
            self.here.taped = None
        self.leave()
        if failed and self.tracker is not None:
            self.tracker.put_failed(self.ordinal, 0)


def patch_tape(module: ModuleType) -> None:
    """Observe gradient tapes, which ``module`` defines."""
    tape, graphs = vars(module).get("GradientTape"), _graphs()
    _observe(tape, "__enter__", _entered, fast=None if graphs is None else _counting_tapes(graphs))
    _observe(tape, "__exit__", _left, 2, fast=_counted_exits(guarded(_left)))
    _observe(tape, "gradient", _differentiated, fast=_counted_gradients(guarded(_differentiated)))


# Each counted step pays for the next three functions, and finds cold caches. So they call as little
# as possible, and all that they read lies in one tuple.


def _counting_tapes(graphs: Any) -> Callable[[Any], object]:
    """Return a callback that counts the step of a tape, or calls `_entered` if it is timed."""
    tracker = core.tracker(layout.EAGER)

    def callback(
        tape: Any,
        local: Any = local,
        pending_kinds: dict[int, Any] = pending_kinds,
        graphs: Any = graphs,
        tracker: Tracker = tracker,
        count_at: int = tracker.count_at,
        counted: type[CountedTapeStep] = CountedTapeStep,
        begin: Callable[[Any], object] = guarded(_entered),
    ) -> object:
        here = local.thread_state
        before = here.taped
        if (
            here.outermost() in (None, before)
            and (before is None or (type(before) is counted and not before.recording))
            and not (here.keras_calls or pending_kinds or graphs.stack)
        ):
            for ordinal in tracker.untimed:
                tracker.words[count_at] = ordinal
                if before is not None:
                    here.applies = False  # no optimizer applied its gradients
                here.taped = counted(here, tracker, ordinal, tape)
                return None
        return begin(tape)

    return callback


def _counted_exits(leave: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    """Return a callback for the end of tapes; ``leave`` handles those of timed and failed steps."""

    def callback(
        tape: Any,
        error: Any,
        local: Any = local,
        inside: set[ThreadState] = inside,
        counted: type[CountedTapeStep] = CountedTapeStep,
        no_call: Any = no_call,
        leave: Callable[[Any, Any], object] = leave,
    ) -> object:
        here = local.thread_state
        taped = here.taped
        if type(taped) is not counted or error is not None or taped.tape() is not tape:
            return leave(tape, error)
        taped.recording = False
        if not here.applies and here.outermost() is taped:
            here.outermost = no_call
            if not here.keras_calls:
                inside.discard(here)
        return None

    return callback


def _counted_gradients(differentiated: Callable[[Any, int], object]) -> Callable[[Any], object]:
    """Return a callback for gradients of tapes; ``differentiated`` handles those of timed steps."""

    def callback(
        tape: Any,
        local: Any = local,
        untimed: tuple[Any, ...] = (CountedTapeStep, type(None)),
        differentiated: Callable[[Any, int], object] = differentiated,
    ) -> object:
        return None if type(local.thread_state.taped) in untimed else differentiated(tape, _FROM_END)

    return callback


def _entered(tape: Any) -> None:
    here: ThreadState = local.thread_state
    taped = here.taped
    if taped is not None and taped.has_stopped() and here.outermost() in (None, taped):
        here.applies = False  # no optimizer applied its gradients
        taped.end(False, taped.ended)
    if here.taped is None and _idle() is not None:
        kind = take_pending_kind(layout.EAGER)
        tracker = core.tracker(kind)
        for ordinal in tracker.untimed:
            tracker.words[tracker.count_at] = ordinal
            here.taped = CountedTapeStep(here, tracker, ordinal, tape)
            return
        here.taped = TapeStep(here, kind, tape)


def _left(tape: Any, error: Any) -> None:
    here: ThreadState = local.thread_state
    taped = here.taped
    if taped is None or taped.tape() is not tape:
        return
    if error is not None:
        taped.end(True)
        return
    taped.recording, taped.ended = False, mono()
    if not here.applies:
        taped.leave()


def _differentiated(_tape: Any, frames: int = call_observer.FUNCTION) -> call_observer.EndCallback | None:
    here: ThreadState = local.thread_state
    taped = here.taped
    if taped is None or not taped.has_stopped() or here.applies:
        return None
    return call_observer.EndCallback(taped.differentiated, frames)


def patch_optimizer(module: ModuleType) -> None:
    """Observe optimizers that apply gradients; ``module`` defines them."""
    for cls in list(vars(module).values()):
        if isinstance(cls, type) and cls.__module__ == module.__name__:
            for name in ("apply_gradients", "apply"):
                _observe(cls, name, _applying)


def _applying(optimizer: Any) -> call_observer.EndCallback | None:
    here: ThreadState = local.thread_state
    taped = here.taped
    if here.applying or here.keras_calls or here.outermost() not in (None, taped):
        return None
    if not sys.modules[_CONTEXT].executing_eagerly():
        return None
    step = _begin_without_tape(here, id(optimizer)) if taped is None else taped
    if step is taped:
        here.optimizers = (_functions(), [id(optimizer)])
    end = call_observer.EndCallback(lambda failed: _applied(here, step, failed))
    here.applying = True
    return end


def _begin_without_tape(here: ThreadState, optimizer: int) -> OutermostStep | None:
    """Begin a step of an optimizer that applies gradients without a tape, and return it.

    None if the gradients came from a function call, or if another optimizer ended the step.
    """
    functions, known = here.optimizers
    if functions != _functions():
        here.optimizers = (_functions(), [])
        return None
    if known and optimizer not in known:
        known.append(optimizer)
        return None
    here.optimizers = (functions, [optimizer])
    return OutermostStep(here, layout.EAGER)


def _functions() -> int:
    """Return the number of function calls that were steps so far."""
    tracker = core.tracker(layout.FUNCTION)
    return tracker.words[tracker.count_at]


def _applied(here: ThreadState, step: OutermostStep | None, failed: bool) -> None:
    here.applying = False
    if step is not None:
        here.applies = True
        step.end(failed)


def _at_exit() -> None:
    """At the end of the process, end a training step whose gradients were never applied."""
    taped = local.thread_state.taped
    if taped is not None and taped.has_stopped():
        taped.end(False, taped.ended)
