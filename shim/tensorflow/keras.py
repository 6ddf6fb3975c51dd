"""Keras: fits, evaluations and predictions, their epochs and batches; single batches.

Every version of Keras calls its list of callbacks at each start and end. These calls are observed.
If a Keras call (a fit, an evaluation, a prediction) never calls its callbacks at its end, it has
failed. This is noticed when its list of callbacks is deleted.
"""

from __future__ import annotations

import sys
from types import FrameType, ModuleType
from typing import Any, Callable
from weakref import ref

from ...formats import layout
from .. import clock, core, guard
from ..channel.ring import Channel
from ..guard import called_back, is_of_framework, of_job
from ..pacing.tracker import Tracker
from ..process_events import at_end, in_child
from ..steps import observer, window
from ..steps.step import OutermostStep, Step
from ..steps.thread_state import ThreadState, local, no_call
from . import activities, models
from .eager_steps import is_eager

#: Mode, a word in the names of callback methods -> the kind of the outer span, and of its batches.
_MODES = {
    "train": (layout.FIT, layout.BATCH),
    "test": (layout.EVALUATE, layout.TEST_BATCH),
    "predict": (layout.PREDICT, layout.PREDICT_BATCH),
}
_CALLER_FRAMES = 3  # frames from a callback to the caller of the observed function, with the guard between

#: Where a model has the number of batches of its validation: in Keras 2 and in Keras 3.
_VALIDATION_BATCHES = (("_eval_data_handler", "inferred_steps"), ("_eval_epoch_iterator", "num_batches"))

#: Classes of models, by the name that a version of Keras gives them.
_MODELS = ("TensorFlowTrainer", "Trainer", "Model")
_open_calls: set[KerasCall] = set()  # all open Keras calls of this process
#: Batch kind -> (channel, ordinal) of a batch that began and found no data.
_unused_ordinals: dict[int, tuple[Channel, int]] = {}


class KerasCall(object):
    """One running fit, evaluation or prediction in one thread."""

    def __init__(self, callbacks: Any, frame: FrameType, kind: int, batch_kind: int) -> None:
        self.kind = kind
        beginning = _beginning(frame)
        self._frame_id = clock.identity(beginning)  # an id: a reference would keep the job's objects alive
        self._is_of_keras = is_of_framework(beginning)
        self.thread_state = local.thread_state
        outer = self.thread_state.loops[-1] if self.thread_state.loops else None
        self.is_eager = is_eager()
        self.tracker = _tracker(kind)
        self.ordinal = self.tracker.next()
        self.batch_tracker = core.tracker(batch_kind, self.is_eager)
        self.parent: int = outer.epoch if outer is not None else 0
        self.epoch: int = self.parent  # ordinal of the span that encloses the batches
        self.epoch_start = 0
        self.batch: Step | None = None
        self.has_batch_methods = False  # whether batches have separate callback methods
        model = getattr(callbacks, "model", None)
        models.remember(model)
        activities.time_callbacks(callbacks)
        self.steps_per_execution = _steps_per_execution(model)
        #: remaining batches of the epoch, evaluation or prediction, if known
        self.batches_left: int | None = None
        if kind != layout.FIT and self.steps_per_execution > 1:
            self.batches_left = _batch_count(callbacks, outer)
        self.start = self.last_seen = clock.mono()
        self.callbacks: Callable[[], object] = ref(callbacks, self._callbacks_deleted)
        self.thread_state.loops.append(self)
        _open_calls.add(self)
        at_end(_at_exit)

    def begin_epoch(self) -> None:
        """Begin an epoch; drop a batch that found no data in the epoch before."""
        self.drop_batch()
        self.epoch = _tracker(layout.EPOCH).next()
        self.epoch_start = self.last_seen = clock.mono()
        steps = (getattr(self.callbacks(), "params", None) or {}).get("steps")
        self.batches_left = steps if isinstance(steps, int) else None

    def end_epoch(self, flags: int = 0, end: int = 0) -> None:
        """End the epoch, now or at ``end``."""
        self.drop_batch()
        if self.epoch_start:
            start, self.epoch_start = self.epoch_start, 0
            _tracker(layout.EPOCH).put(layout.EPOCH, start, (end or clock.mono()) - start, self.epoch, 0, flags)

    def begin_batch(self) -> None:
        """Begin a batch."""
        self.drop_batch()
        tracker = self.batch_tracker
        channel, ordinal = _unused_ordinals.pop(tracker.kind, (None, 0))
        if channel is None or channel is not tracker.channel:
            ordinal = tracker.next()
        steps, left = self.steps_per_execution, self.batches_left
        count = steps if left is None else max(1, min(steps, left))
        self.batch, self.last_seen = Step(tracker, ordinal, 0, self.is_eager, count=count), clock.mono()

    def begin_own_batch(self) -> None:
        """Begin a batch, in a version that has methods for the batches of each mode."""
        self.has_batch_methods = True
        self.begin_batch()

    def end_batch(self, flags: int = 0) -> None:
        """End the open batch, if any."""
        batch, self.batch = self.batch, None
        if batch is None:
            return
        if self.batches_left is not None:
            self.batches_left -= batch.count
        batch.end(flags, self.epoch)

    def drop_batch(self) -> None:
        """Drop an open batch that found no data."""
        batch, self.batch = self.batch, None
        if batch is None:
            return
        window.drop(batch)
        if batch.tracker.channel is not None:
            _unused_ordinals[batch.tracker.kind] = (batch.tracker.channel, batch.ordinal)

    def end(self, flags: int = 0, end: int = 0) -> None:
        """End the Keras call and everything open in it, now or at ``end``."""
        # If an exception of the job's interrupted the constructor, the call may be in the thread's
        # list, but not in `_open_calls`. `_begin_call` relies on its removal from the list.
        if self in self.thread_state.loops:
            self.thread_state.loops.remove(self)
        if self not in _open_calls:
            return
        _open_calls.discard(self)
        self.callbacks = no_call  # the weak reference calls nothing after the end
        if flags and not end:
            self.end_batch(flags)
        if self.kind == layout.FIT:
            self.end_epoch(flags, end)
        self.drop_batch()
        duration = (end or clock.mono()) - self.start
        self.tracker.put(self.kind, self.start, duration, self.ordinal, 0, flags, self.parent)

    def end_if_left(self) -> bool:
        """End a call that an exception has left; return whether it was one. Greenlets hide it."""
        if not self._is_of_keras or "greenlet" in sys.modules or self.is_running(sys._getframe(1)):
            return False
        self.end(layout.FLAG_FAILED, self.last_seen)
        return True

    def is_running(self, frame: FrameType | None) -> bool:
        """Return whether ``frame``, or a caller of it, began the call and has not ended."""
        if self.callbacks() is None:  # deleted
            return False
        while frame is not None and clock.identity(frame) != self._frame_id:
            frame = frame.f_back
        return frame is not None

    @called_back
    def _callbacks_deleted(self, _reference: object) -> None:
        """End as failed: the list of callbacks was deleted after an exception."""
        self.end(layout.FLAG_FAILED)


def _begin_call(callbacks: Any, mode: str, frame: FrameType) -> KerasCall:
    """Begin the Keras call that has ``callbacks``, and return it; ``frame`` called their method."""
    # An open Keras call without frames has ended by an exception that is still being handled.
    loops = local.thread_state.loops
    while loops and not loops[-1].is_running(frame):
        loops[-1].end(layout.FLAG_FAILED, loops[-1].last_seen)
    return KerasCall(callbacks, frame, *_MODES[mode])


def _beginning(frame: FrameType) -> FrameType:
    """Return the frame that began a Keras call; ``frame`` called a method of its callbacks.

    This is the outermost frame of Keras's below the job's code. If the job calls the callbacks
    itself, it is the job's frame. No local variables are read: this could change those that a
    debugger sets.
    """
    while frame.f_back is not None and (frame.f_code.co_name.startswith(activities.LOOPS) or _is_between(frame)):
        frame = frame.f_back
    beginning, caller = frame, frame.f_back if is_of_framework(frame) else None
    while caller is not None and (is_of_framework(caller) or _is_between(caller)):
        beginning, caller = caller if is_of_framework(caller) else beginning, caller.f_back
    return beginning


def _is_between(frame: FrameType) -> bool:
    """Return whether the frame is the standard library's, such as that of a context manager."""
    return guard.is_of_standard_library(frame.f_code.co_filename)


def _find_call(callbacks: object, mode: str, _frame: FrameType) -> KerasCall | None:
    """Return the innermost Keras call of ``callbacks`` in this mode."""
    loops: list[KerasCall] = local.thread_state.loops
    calls = (each for each in reversed(loops) if each.callbacks() is callbacks)
    return next((each for each in calls if each.kind == _MODES[mode][0]), None)


def _ensure_call(callbacks: Any, mode: str, frame: FrameType) -> KerasCall | None:
    """Return the Keras call of ``callbacks``; begin it if the shim has not seen its start."""
    keras_call, state = _find_call(callbacks, mode, frame), core.state()
    if keras_call is not None or state is None or state.saw_start:
        return keras_call
    return _begin_call(callbacks, mode, frame)


#: Method of the list of callbacks -> what finds or begins its Keras call, and what is done with
#: that. The first ones exist for each mode.
_METHODS: dict[str, tuple[Callable[..., Any], Callable[[KerasCall], object]]] = {
    "on_%s_begin": (_begin_call, bool),
    "on_%s_batch_begin": (_ensure_call, KerasCall.begin_own_batch),
    "on_%s_batch_end": (_find_call, KerasCall.end_batch),
    "on_%s_end": (_find_call, KerasCall.end),
}
_EPOCH_METHODS: dict[str, tuple[Callable[..., Any], Callable[[KerasCall], object]]] = {
    "on_epoch_begin": (_ensure_call, KerasCall.begin_epoch),
    "on_epoch_end": (_find_call, KerasCall.end_epoch),
}


def _within_call(find: Callable[..., Any], action: Callable[[KerasCall], object], mode: str) -> Callable[[Any], None]:
    def callback(callbacks: Any) -> None:
        keras_call = find(callbacks, mode, sys._getframe(_CALLER_FRAMES))
        if keras_call is not None:
            action(keras_call)

    return callback


def _batch_hook(callbacks: Any, mode: str, hook: str) -> None:
    """Begin or end a batch in graph mode, where Keras has one method for both."""
    if mode in _MODES:
        find = _ensure_call if hook == "begin" else _find_call
        keras_call = find(callbacks, mode, sys._getframe(_CALLER_FRAMES))
        if keras_call is not None and not keras_call.has_batch_methods:
            (keras_call.begin_batch if hook == "begin" else keras_call.end_batch)()


def patch_callbacks(module: ModuleType) -> None:
    """Observe the list of callbacks, which ``module`` defines."""
    cls = getattr(module, "CallbackList", None)
    if isinstance(cls, type) and cls.__module__ == module.__name__:
        in_child(_after_fork)
        for mode in _MODES:
            for name, row in _METHODS.items():
                observer.observe(cls, name % mode, _within_call(*row, mode))
        for name, row in _EPOCH_METHODS.items():
            observer.observe(cls, name, _within_call(*row, "train"))
        observer.observe(cls, "_call_batch_hook", _batch_hook, 3)


# -- single batches: train_on_batch, test_on_batch and predict_on_batch --------------------------


def patch_models(module: ModuleType) -> None:
    """Observe the methods of models for single batches and for saving; ``module`` defines them."""
    activities.patch(module)
    for cls in (getattr(module, name, None) for name in _MODELS):
        if isinstance(cls, type) and cls.__module__ == module.__name__:
            runs_sessions = "_standardize_user_data" in cls.__dict__
            for mode, (_, kind) in _MODES.items():
                callback = _batch_callback(kind, runs_sessions)
                observer.observe(cls, "%s_on_batch" % mode, callback, observes_end=True)


def _batch_callback(kind: int, runs_sessions: bool) -> Callable[[object], observer.EndCallback | None]:
    """Return a callback that begins a batch.

    ``runs_sessions``: the batch consists of session runs, and begins now. Otherwise it is the next
    function call within the method.
    """

    def callback(model: object) -> observer.EndCallback | None:
        if runs_sessions:
            models.remember(model)
        state: ThreadState = local.thread_state
        if state.is_in_loop() or state.is_in_step:
            return None
        if runs_sessions:
            return observer.EndCallback(OutermostStep(state, kind, needs_window=False).end)
        previous_kind = state.pending_kind
        end_callback = observer.EndCallback(lambda _failed: setattr(state, "pending_kind", previous_kind))
        state.pending_kind = kind
        return end_callback

    return callback


# -- helpers -------------------------------------------------------------------------------------


def _tracker(kind: int) -> Tracker:
    """Return the tracker of an outer ``kind``, with a channel if possible."""
    tracker = core.tracker(kind, False)
    tracker.open()
    return tracker


def _steps_per_execution(model: Any) -> int:
    value: Any = of_job(getattr, model, "_steps_per_execution", None)
    if value is None:
        value = of_job(getattr, model, "steps_per_execution", None)
    if hasattr(value, "numpy"):
        value = int(value.numpy())
    return value if isinstance(value, int) and value > 0 else 1


def _batch_count(callbacks: Any, outer: KerasCall | None) -> int | None:
    """Return how many batches an evaluation or prediction has, None if that is unknown."""
    steps = (getattr(callbacks, "params", None) or {}).get("steps")
    if outer is not None and outer.callbacks() is callbacks:  # a validation, with the callbacks of its fit
        model = getattr(callbacks, "model", None)
        steps = None
        for source, attribute in _VALIDATION_BATCHES:
            steps = getattr(getattr(model, source, None), attribute, steps)
    return steps if isinstance(steps, int) else None


def _at_exit() -> None:
    for keras_call in list(_open_calls):
        keras_call.end(layout.FLAG_FAILED)


def _after_fork() -> None:
    """Forget the parent's Keras calls in a forked child, which may go on with one of them."""
    _open_calls.clear()
    _unused_ordinals.clear()
