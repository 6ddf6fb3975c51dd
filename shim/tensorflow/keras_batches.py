"""Single batches of Keras: train_on_batch, test_on_batch and predict_on_batch."""

from __future__ import annotations

import _thread
import sys
import weakref

from ...formats import layout
from .. import core
from ..clock import mono
from ..guard import contain_in_callback, guarded, uninterrupted_start
from . import call_observer, models
from .eager_steps import OutermostStep
from .function import busy_threads, local, pending_kinds
from .step import CountedRunStep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType
    from typing import Any, Callable, Container

    from ..pacing.tracker import Tracker
    from .function import ThreadState

#: Classes with these methods, by the name that a version of Keras gives them.
_MODELS = ("TensorFlowTrainer", "Trainer", "Model")
_KINDS = {
    "train_on_batch": layout.BATCH,
    "test_on_batch": layout.TEST_BATCH,
    "predict_on_batch": layout.PREDICT_BATCH,
}
_GUARDED_FRAMES = 2  # frames from a guarded callback to the observed method
_FAST_FRAMES = 1  # the same from a callback without a guard
_RETURN_OPCODES = call_observer.return_opcodes()


def patch(module: ModuleType) -> None:
    """Observe the methods for single batches; ``module`` defines the models."""
    for cls in (getattr(module, name, None) for name in _MODELS):
        if not isinstance(cls, type) or cls.__module__ != module.__name__:
            continue
        runs_sessions = "_standardize_user_data" in cls.__dict__
        for name, kind in _KINDS.items():
            if runs_sessions:
                begin = _run_batch_callback(kind)
                call_observer.observe(
                    cls, name, begin, observes_end=True, fast_callback=_batch_counter(kind, guarded(begin))
                )
            else:
                call_observer.observe(
                    cls,
                    name,
                    _function_batch_callback(kind, _GUARDED_FRAMES),
                    fast_callback=_function_batch_callback(kind, _FAST_FRAMES),
                )


def _function_batch_callback(kind: int, frames: int) -> Callable[[object], None]:
    """Return a callback that makes the next function call within the method a batch.

    ``frames`` is the number of frames from the callback to the method.
    """

    def callback(
        _model: object,
        busy_threads: set[ThreadState] = busy_threads,
        pending_kinds: dict[int, Any] = pending_kinds,
        get_ident: Callable[[], int] = _thread.get_ident,
        getframe: Callable[[int], FrameType] = sys._getframe,
    ) -> None:
        if busy_threads:
            state: ThreadState = local.thread_state
            if state.keras_calls or state.is_in_call:
                return
        pending_kinds[get_ident()] = (kind, getframe(frames).f_code)

    return callback


def _run_batch_callback(kind: int) -> Callable[[object], call_observer.EndCallback | None]:
    """Return a callback that begins a batch now, for versions whose batches are session runs."""

    def callback(model: object) -> call_observer.EndCallback | None:
        models.remember(model)
        state: ThreadState = local.thread_state
        if state.keras_calls or state.is_in_call:
            return None
        return call_observer.EndCallback(OutermostStep(state, kind, needs_window=False).end)

    return callback


class _CountedBatch(CountedRunStep):
    """A batch that is only counted.

    It is the thread's outermost call and ends when it is released. `_batch_counter` sets the
    attributes.
    """

    __slots__ = ("__weakref__", "thread_state")

    thread_state: ThreadState

    @property
    def step(self) -> _CountedBatch:
        """This batch, as the step of the outermost call."""
        return self

    def cancel(self) -> None:
        """Let the end of this batch do nothing."""
        del self.thread_state

    def __del__(
        self,
        busy_threads: set[ThreadState] = busy_threads,
        getframe: Callable[[int], FrameType] = sys._getframe,
        return_opcodes: Container[int] = _RETURN_OPCODES,
    ) -> None:
        try:
            state = getattr(self, "thread_state", None)
            if state is not None:  # else cancelled, or interrupted while it was created
                if not state.keras_calls:
                    busy_threads.discard(state)
                frame = getframe(1)
                failed = frame.f_code.co_code[frame.f_lasti] not in return_opcodes
                if failed or self.has_run:
                    self.end(layout.FLAG_FAILED if failed else 0)
        except BaseException:
            contain_in_callback()


uninterrupted_start(_CountedBatch.__del__)


def _batch_counter(kind: int, begin: Callable[[object], object]) -> Callable[[object], object]:
    """Return a callback that counts a batch, or calls ``begin`` if the batch is to be timed."""
    tracker = core.tracker(kind, False)

    # Each batch pays for this function, and finds cold caches. So it calls no other function of
    # ours, and all that it reads lies in one tuple, the default arguments.
    def callback(
        model: Any,
        busy_threads: set[ThreadState] = busy_threads,
        remembered_ids: set[int] = models.remembered_ids,
        tracker: Tracker = tracker,
        new: Any = object.__new__,
        batch_class: Any = _CountedBatch,
        local: Any = local,
        ref: Any = weakref.ref,
        mono: Callable[[], int] = mono,
    ) -> object:
        if not busy_threads and id(model) in remembered_ids:
            for ordinal in tracker.untimed:
                batch = new(batch_class)
                batch.tracker = tracker
                batch.ordinal = ordinal
                batch.key = batch.has_run = 0
                batch.thread_state = state = local.thread_state
                state.outermost_call = ref(batch)
                busy_threads.add(state)
                batch.start = mono()
                return batch
        return begin(model)

    return callback
