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
from .function import inside, local, pending_kinds
from .step import CountedRuns

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
_METHOD = 2  # frames from a callback to the observed method, with the guard between
_FROM_FAST = 1  # frames from a callback without a guard
_FROM_END = 4  # frames from an EndCallback to the observed method, if `_counting` called its creator
_RETURNS = call_observer.returns()


def patch(module: ModuleType) -> None:
    """Observe the methods for single batches; ``module`` defines the models."""
    for cls in (getattr(module, name, None) for name in _MODELS):
        if not isinstance(cls, type) or cls.__module__ != module.__name__:
            continue
        runs_sessions = "_standardize_user_data" in cls.__dict__
        for name, kind in _KINDS.items():
            if runs_sessions:
                begin = _batch_of_runs(kind)
                call_observer.observe(cls, name, begin, ends=True, fast=_counting(kind, guarded(begin)))
            else:
                call_observer.observe(
                    cls, name, _batch_of_function(kind, _METHOD), fast=_batch_of_function(kind, _FROM_FAST)
                )


def _batch_of_function(kind: int, frames: int) -> Callable[[object], None]:
    """Return a callback that makes the next function call within the method a batch.

    ``frames`` is the number of frames from the callback to the method.
    """

    def callback(
        _model: object,
        inside: set[ThreadState] = inside,
        pending_kinds: dict[int, Any] = pending_kinds,
        thread: Callable[[], int] = _thread.get_ident,
        getframe: Callable[[int], FrameType] = sys._getframe,
    ) -> None:
        if inside:
            here: ThreadState = local.thread_state
            if here.keras_calls or here.calling:
                return
        pending_kinds[thread()] = (kind, getframe(frames).f_code)

    return callback


def _batch_of_runs(kind: int) -> Callable[[object], call_observer.EndCallback | None]:
    """Return a callback that begins a batch now, for versions whose batches are session runs."""

    def callback(model: object) -> call_observer.EndCallback | None:
        models.remember(model)
        here: ThreadState = local.thread_state
        if here.keras_calls or here.calling:
            return None
        return call_observer.EndCallback(OutermostStep(here, kind, windows=False).end, _FROM_END)

    return callback


class _CountedBatch(CountedRuns):
    """A batch that is only counted, and the thread's outermost call; it ends when it is released.

    `_counting` sets its attributes.
    """

    __slots__ = ("__weakref__", "frame", "here")

    frame: int  # id of the method's frame
    here: ThreadState

    @property
    def step(self) -> _CountedBatch:
        """The step of this outermost call."""
        return self

    def cancel(self) -> None:
        """Let the end of this batch do nothing."""
        del self.here

    def __del__(
        self,
        inside: set[ThreadState] = inside,
        getframe: Callable[[int], FrameType] = sys._getframe,
        returns: Container[int] = _RETURNS,
        is_gone_first: bool = call_observer.FRAME_GONE_FIRST,
    ) -> None:
        try:
            here = getattr(self, "here", None)
            if here is not None:  # else cancelled, or interrupted while it was created
                if not here.keras_calls:
                    inside.discard(here)
                frame = getframe(1)
                failed = (
                    id(frame) == self.frame if is_gone_first else frame.f_code.co_code[frame.f_lasti] not in returns
                )
                if failed or self.has_run:
                    self.end(layout.FLAG_FAILED if failed else 0)
        except BaseException:
            contain_in_callback()


uninterrupted_start(_CountedBatch.__del__)


def _counting(kind: int, begin: Callable[[object], object]) -> Callable[[object], object]:
    """Return a callback that counts a batch, or calls ``begin`` if the batch is to be timed."""
    tracker = core.tracker(kind, False)

    # As with calls of functions, each batch pays for this function, and finds cold caches. So it
    # calls no other function of ours, and all that it reads lies in one tuple.
    def callback(
        model: Any,
        inside: set[ThreadState] = inside,
        known: set[int] = models.remembered,
        tracker: Tracker = tracker,
        count_at: int = tracker.count_at,
        new: Any = object.__new__,
        counted: Any = _CountedBatch,
        local: Any = local,
        ref: Any = weakref.ref,
        mono: Callable[[], int] = mono,
        is_gone_first: bool = call_observer.FRAME_GONE_FIRST,
    ) -> object:
        if not inside and id(model) in known:
            for ordinal in tracker.untimed:
                tracker.words[count_at] = ordinal
                batch = new(counted)
                batch.tracker = tracker
                batch.ordinal = ordinal
                batch.key = batch.has_run = 0
                batch.here = here = local.thread_state
                if is_gone_first:
                    batch.frame = id(sys._getframe(1))
                here.outermost = ref(batch)
                inside.add(here)
                batch.start = mono()
                return batch
        return begin(model)

    return callback
