"""Outermost calls of tf.function as steps, observed through TensorFlow's trace annotation.

The call itself enters and leaves the annotation: nothing of ours is on the stack while the function
runs or is traced.
"""

from __future__ import annotations

import sys
import types
from types import ModuleType
from typing import Any, Callable
from weakref import ref

from ...formats import layout
from .. import core
from ..guard import guarded
from ..pacing.tracker import Tracker
from ..process_events import in_child
from ..steps import observer, window
from ..steps.activities import put_first_run
from ..steps.step import CountedStep, OutermostStep, Step, begin, key_of
from ..steps.thread_state import ThreadState, after_fork, local, no_call
from .eager_steps import idle_state, is_in_unseen_loop

_OPS = "tensorflow.python.framework.ops"
#: Annotations that are no steps: a function of TensorFlow that runs before the first call of
#: another function, and the making of a function's graph.
_NO_STEPS = ("initialize_variables", "tf.function-graph_building")


def patch(module: ModuleType) -> None:
    """Measure calls of the functions, or direct calls of the concrete ones, of ``module``."""
    in_child(after_fork)
    if isinstance(getattr(getattr(module, "trace", None), "Trace", None), type):
        core.replace(module, "trace", _observed_trace)
    else:
        _observe_functions(module)


def _observed_trace(original: ModuleType) -> ModuleType:
    """Return a copy of the module ``original`` whose annotation reports function calls to us."""
    module_copy = types.ModuleType(original.__name__, original.__doc__)
    module_copy.__dict__.update(original.__dict__)
    vars(module_copy)["Trace"] = _measured_class(vars(original)["Trace"], core.tracker(layout.FUNCTION))
    return module_copy


def _measured_class(base: Any, tracker: Tracker) -> Callable[..., object]:
    base_init, base_exit = base.__init__, base.__exit__
    # An empty stack of the graphs that the thread builds means eager execution, once a step was
    # timed: before that, no step is only counted.
    graphs, take_untimed = sys.modules[_OPS]._default_graph_stack, tracker.take_untimed

    class Measured(base):  # type: ignore[misc]  # known at run time only
        """TensorFlow's annotation, which also reports to us when it is created and left."""

        _step: Any = None  # the step, or its ordinal if it is only counted; None if the call is not a step

        def __init__(self, name: str, **kwargs: Any) -> None:
            base_init(self, name, **kwargs)
            state: ThreadState = local.thread_state
            if state.outermost_call() is not None or name in _NO_STEPS:
                return
            state.outermost_call, state.traced_ns = ref(self), 0
            if not (state.loops and state.is_in_loop()) and not graphs.stack:
                self._step = (not state.pending_kind and take_untimed()) or _begin(name)

        def __exit__(self, exc_type: object, value: object, trace: object) -> object:
            result = base_exit(self, exc_type, value, trace)
            state: ThreadState = local.thread_state
            if state.outermost_call() is self:
                if state.traced_ns:
                    put_first_run(state, _name_of(sys._getframe(1).f_locals.get("self")))
                state.outermost_call = no_call
                step = self._step
                if type(step) is not int or exc_type is not None or window.current is not None:
                    _end(step, exc_type, tracker, sys._getframe(1).f_locals)
            elif window.current is not None and not isinstance(state.outermost_call(), base):
                window.note_call(sys._getframe(1).f_locals)
            return result

    for attribute in ("__name__", "__qualname__", "__module__"):
        setattr(Measured, attribute, getattr(base, attribute))
    return Measured


@guarded
def _begin(name: object) -> Step | CountedStep | None:
    if is_in_unseen_loop(local.thread_state):
        return None
    kind = local.thread_state.take_pending_kind(layout.FUNCTION)
    tracker = core.tracker(kind)
    return begin(tracker, key_of(name), name) if kind == layout.FUNCTION else begin(tracker)


@guarded
def _end(step: Any, error: object, tracker: Tracker, call: dict[str, Any]) -> None:
    """End ``step`` of a call; ``call`` has the call's ``self`` and ``args``."""
    if window.current is not None:
        window.note_call(call)
    if type(step) is int:
        if error is not None:
            tracker.put_failed(step, key_of(_name_of(call.get("self"))))
    elif step is not None:
        step.end(layout.FLAG_FAILED if error is not None else 0)


def _name_of(function: Any) -> object:
    return getattr(getattr(function, "_func_graph", None), "name", None) or getattr(function, "_name", "")


# -- TensorFlow 1.15, which has no annotation, and no profiler session for windows ---------------


def _observe_functions(module: ModuleType) -> None:
    for name, method in (("Function", "__call__"), ("ConcreteFunction", "_call_impl")):
        cls = vars(module).get(name)
        if getattr(cls, "__module__", None) == module.__name__:
            observer.observe(cls, method, _function_called, observes_end=True)


def _function_called(function: Any) -> observer.EndCallback | None:
    state: ThreadState = local.thread_state
    name = _name_of(function)
    if name in _NO_STEPS or idle_state() is None:
        return None
    return observer.EndCallback(OutermostStep(state, state.take_pending_kind(layout.FUNCTION), name).end)
