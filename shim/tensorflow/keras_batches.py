"""Single batches of Keras: train_on_batch, test_on_batch and predict_on_batch."""

from __future__ import annotations

import sys
import weakref

from ...formats import layout
from .. import core, native
from ..clock import mono
from ..guard import called_back, contain_in_callback, guarded, uninterrupted_start
from . import call_observer, models
from .eager_steps import OutermostStep
from .function import local, no_call
from .step import put_counted_run

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
                fast_callback = _batch_counter(kind, guarded(begin))
            else:
                begin = _function_batch_callback(kind)
                fast_callback = native.module and native.module.function_batch_callback(kind, local)
            call_observer.observe(cls, name, begin, observes_end=True, fast_callback=fast_callback)


def _function_batch_callback(kind: int) -> Callable[[object], call_observer.EndCallback | None]:
    """Return a callback that makes the next function call within the method a batch."""

    def callback(_model: object) -> call_observer.EndCallback | None:
        state: ThreadState = local.thread_state
        if state.is_in_step:
            return None
        previous_kind = state.pending_kind

        def on_end(_failed: bool) -> None:
            state.pending_kind = previous_kind

        end_callback = call_observer.EndCallback(on_end)
        state.pending_kind = kind
        return end_callback

    return callback


def _run_batch_callback(kind: int) -> Callable[[object], call_observer.EndCallback | None]:
    """Return a callback that begins a batch now, for versions whose batches are session runs."""

    def callback(model: object) -> call_observer.EndCallback | None:
        models.remember(model)
        state: ThreadState = local.thread_state
        if state.is_in_step:
            return None
        return call_observer.EndCallback(OutermostStep(state, kind, needs_window=False).end)

    return callback


class PythonBatchFields(object):
    """The fields of `_CountedBatch`, and its end, where the shim's C part is missing.

    The batch ends when it is released.
    """

    __slots__ = ("has_run", "ordinal", "start", "thread_state", "tracker")

    end: Callable[[bool], None]
    has_run: bool
    ordinal: int
    start: int
    thread_state: ThreadState
    tracker: Tracker | None

    def __del__(
        self,
        getframe: Callable[[int], FrameType] = sys._getframe,
        return_opcodes: Container[int] = _RETURN_OPCODES,
    ) -> None:
        try:
            state = getattr(self, "thread_state", None)
            if state is not None and self.tracker is not None:  # else cancelled, or not completely created
                state.is_busy = bool(state.keras_calls)
                frame = getframe(1)
                failed = frame.f_code.co_code[frame.f_lasti] not in return_opcodes
                if failed or self.has_run:
                    self.end(failed)
        except BaseException:
            contain_in_callback()


uninterrupted_start(PythonBatchFields.__del__)
if TYPE_CHECKING:
    BatchFields = PythonBatchFields
else:
    BatchFields = PythonBatchFields if native.module is None else native.module.CountedFields


class _CountedBatch(BatchFields):
    """A batch that consists of session runs and is only counted.

    It is the thread's outermost call. Its counter sets the fields.
    """

    __slots__ = ("__weakref__",)

    key = 0
    needs_window = False

    @property
    def step(self) -> _CountedBatch:
        """This batch, as the step of the outermost call."""
        return self

    def cancel(self) -> None:
        """Let the end of this batch do nothing."""
        self.tracker = None

    @called_back
    def end(self, failed: bool) -> None:
        """Put the span of a batch that failed or of which a run is recorded."""
        if self.has_run:
            put_counted_run(self, layout.FLAG_FAILED if failed else 0)
        elif self.tracker is not None:
            self.tracker.put_failed(self.ordinal, self.key)


def _batch_counter(kind: int, begin: Callable[[object], object]) -> Callable[[object], object]:
    """Return a callback that counts a batch, or calls ``begin`` if the batch is to be timed."""
    tracker = core.tracker(kind, False)
    if native.module is not None:
        counter: Callable[[object], object] = native.module.run_batch_callback(
            tracker.untimed, None, local, tracker, _CountedBatch, no_call, models.remembered_ids, begin
        )
        return counter

    # This function runs in each batch, with cold caches. So it calls no other function of ours, and
    # all that it reads lies in one tuple, the default arguments.
    def callback(
        model: Any,
        local: Any = local,
        remembered_ids: set[int] = models.remembered_ids,
        tracker: Tracker = tracker,
        new: Any = object.__new__,
        batch_class: Any = _CountedBatch,
        ref: Any = weakref.ref,
        mono: Callable[[], int] = mono,
    ) -> object:
        state = local.thread_state
        if not state.is_busy and id(model) in remembered_ids:
            for ordinal in tracker.untimed:
                batch = new(batch_class)
                batch.tracker = tracker
                batch.ordinal = ordinal
                batch.has_run = False
                batch.thread_state = state
                state.outermost_call = ref(batch)
                state.is_busy = True
                batch.start = mono()
                return batch
        return begin(model)

    return callback
