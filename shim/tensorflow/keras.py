"""Keras: fits, evaluations and predictions, their epochs and batches.

Every version of Keras calls its list of callbacks at each start and end. These calls are observed.
If a Keras call (a fit, an evaluation, a prediction) never calls its callbacks at its end, it has
failed. This is noticed when its list of callbacks is deleted.
"""

from __future__ import annotations

import sys
import weakref

from ...formats import layout
from .. import clock, core
from ..guard import called_back
from ..process_events import at_end, in_child
from . import call_observer, models, window
from .function import local, no_call
from .step import Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType, ModuleType
    from typing import Any, Callable

    from ..channel.ring import Channel
    from ..pacing.tracker import Tracker

    Callback = Callable[..., object]

_CONTEXT = "tensorflow.python.eager.context"
#: Mode, a word in the names of callback methods -> the kind of the outer span, and of its batches.
_MODES = {
    "train": (layout.FIT, layout.BATCH),
    "test": (layout.EVALUATE, layout.TEST_BATCH),
    "predict": (layout.PREDICT, layout.PREDICT_BATCH),
}
_DEPTH_MAX = 64  # maximum frames searched for those of an outer Keras call
_CALLER_FRAMES = 3  # frames from a callback to the caller of the observed function, with the guard between

_IDENTIFYING_FRAMES = 2  # number of frames that identify a Keras call; one of them is that of Keras's loop
_GENERATOR = 0x20  # flag of a generator's code

#: Where a model has the number of batches of its validation: in Keras 2 and in Keras 3.
_VALIDATION_BATCHES = (("_eval_data_handler", "inferred_steps"), ("_eval_epoch_iterator", "num_batches"))

_open_calls: set[KerasCall] = set()  # all open Keras calls of this process
#: Batch kind -> (channel, ordinal) of a batch that began and found no data.
_unused_ordinals: dict[int, tuple[Channel, int]] = {}


class KerasCall(object):
    """One running fit, evaluation or prediction in one thread."""

    def __init__(self, callbacks: Any, kind: int, batch_kind: int, frame: FrameType) -> None:
        self.kind = kind
        self.thread_state = local.thread_state
        outer = self.thread_state.keras_calls[-1] if self.thread_state.keras_calls else None
        self.frames = _lasting_frames(frame)
        self.is_eager = _is_eager()
        self.tracker = _tracker(kind, False)
        self.ordinal = self.tracker.next()
        self.batch_tracker = core.tracker(batch_kind, self.is_eager)
        self.parent: int = outer.epoch if outer is not None else 0
        self.epoch: int = self.parent  # ordinal of the span that encloses the batches
        self.epoch_start = 0
        self.batch: Step | None = None
        self.has_batch_methods = False  # whether batches have separate callback methods
        model = getattr(callbacks, "model", None)
        models.remember(model)
        self.steps_per_execution = _steps_per_execution(model)
        #: remaining batches of the epoch, evaluation or prediction, if known
        self.batches_left: int | None = None
        if kind != layout.FIT and self.steps_per_execution > 1:
            self.batches_left = _batch_count(callbacks, outer)
        self.start = clock.mono()
        self.callbacks: Callable[[], object] = weakref.ref(callbacks, self._callbacks_deleted)
        self.thread_state.keras_calls.append(self)
        self.thread_state.update_busy()
        _open_calls.add(self)
        at_end(_at_exit)

    def begin_epoch(self, callbacks: object) -> None:
        """Begin an epoch; drop a batch that found no data in the epoch before."""
        self.drop_batch()
        self.epoch = _tracker(layout.EPOCH, False).next()
        self.epoch_start = clock.mono()
        steps = (getattr(callbacks, "params", None) or {}).get("steps")
        self.batches_left = steps if isinstance(steps, int) else None

    def end_epoch(self, flags: int = 0) -> None:
        """End the epoch."""
        self.drop_batch()
        if self.epoch_start:
            start, self.epoch_start = self.epoch_start, 0
            _tracker(layout.EPOCH, False).put(layout.EPOCH, start, clock.mono() - start, self.epoch, 0, flags)

    def begin_batch(self) -> None:
        """Begin a batch."""
        self.drop_batch()
        tracker = self.batch_tracker
        channel, ordinal = _unused_ordinals.pop(tracker.kind, (None, 0))
        if channel is None or channel is not tracker.channel:
            ordinal = tracker.next()
        self.batch = Step(tracker, ordinal, 0, self.is_eager, count=self._batches_at_once())

    def end_batch(self, flags: int = 0) -> None:
        """End the open batch, if any."""
        batch, self.batch = self.batch, None
        if batch is None:
            return
        if self.batches_left is not None:
            self.batches_left -= batch.count
        batch.end(flags, self.epoch)

    def _batches_at_once(self) -> int:
        """Return the number of batches that Keras runs in its next call."""
        steps = self.steps_per_execution
        return steps if self.batches_left is None else max(1, min(steps, self.batches_left))

    def drop_batch(self) -> None:
        """Drop an open batch that found no data."""
        batch, self.batch = self.batch, None
        if batch is None:
            return
        window.drop(batch)
        if batch.tracker.channel is not None:
            _unused_ordinals[batch.tracker.kind] = (batch.tracker.channel, batch.ordinal)

    def end(self, flags: int = 0) -> None:
        """End the Keras call and everything open in it."""
        # If an exception of the job's interrupted the constructor, the call may be in the thread's
        # list, but not in `_open_calls`. `_begin_call` relies on its removal from the list.
        if self in self.thread_state.keras_calls:
            self.thread_state.keras_calls.remove(self)
            self.thread_state.update_busy()
        if self not in _open_calls:
            return
        _open_calls.discard(self)
        self.callbacks = no_call  # the weak reference calls nothing after the end
        if flags:
            self.end_batch(flags)
        if self.kind == layout.FIT:
            self.end_epoch(flags)
        self.drop_batch()
        self.tracker.put(self.kind, self.start, clock.mono() - self.start, self.ordinal, 0, flags, self.parent)

    def may_enclose(self, frame: FrameType | None) -> bool:
        """Return whether code called by ``frame`` may run within this Keras call."""
        for _ in range(_DEPTH_MAX):
            frame = frame.f_back if frame is not None else None
            if frame is None:
                return False
            if (id(frame), frame.f_code) in self.frames:
                return True
        return True

    @called_back
    def _callbacks_deleted(self, _reference: object) -> None:
        """End as failed: the list of callbacks was deleted after an exception."""
        self.end(layout.FLAG_FAILED)


def _lasting_frames(frame: FrameType | None) -> list[tuple[int, CodeType]]:
    """Return (id, code) of the next two frames from ``frame`` on that last until the call's end.

    TensorFlow 1.15 begins a fit in a context manager that is a generator. The frames of its entry
    do not last.
    """
    frames: list[tuple[int, CodeType]] = []
    while frame is not None and len(frames) < _IDENTIFYING_FRAMES:
        code = frame.f_code
        if not code.co_flags & _GENERATOR and code.co_name != "__enter__":
            frames.append((id(frame), code))
        frame = frame.f_back
    return frames


def _begin_callback(mode: str) -> Callback:
    def callback(callbacks: Any) -> None:
        _begin_call(callbacks, mode, sys._getframe(_CALLER_FRAMES))

    return callback


def _begin_call(callbacks: Any, mode: str, frame: FrameType) -> KerasCall:
    """Begin the Keras call that has ``callbacks``, and return it; ``frame`` called their method."""
    # An open Keras call whose frame is gone ended by an exception that is still being handled.
    keras_calls = local.thread_state.keras_calls
    while keras_calls and not keras_calls[-1].may_enclose(frame):
        keras_calls[-1].end(layout.FLAG_FAILED)
    return KerasCall(callbacks, *_MODES[mode], frame)


def _end_callback(mode: str) -> Callback:
    kind = _MODES[mode][0]

    def callback(callbacks: Any) -> None:
        for keras_call in reversed(local.thread_state.keras_calls):
            if keras_call.kind == kind and keras_call.callbacks() is callbacks:
                keras_call.end()
                return

    return callback


def _innermost_call_of(callbacks: object) -> KerasCall | None:
    """Return the innermost Keras call if it belongs to ``callbacks``."""
    keras_calls = local.thread_state.keras_calls
    if keras_calls and keras_calls[-1].callbacks() is callbacks:
        return keras_calls[-1]
    return None


def _ensure_call(callbacks: Any, mode: str, frame: FrameType) -> KerasCall | None:
    """Return the Keras call of ``callbacks``; begin it if the shim has not seen its start."""
    keras_call = _innermost_call_of(callbacks)
    if keras_call is not None:
        return keras_call
    state = core.state()
    if state is None or state.saw_start:
        return None
    if any(outer.callbacks() is callbacks for outer in local.thread_state.keras_calls):
        return None
    return _begin_call(callbacks, mode, frame)


def _begin_epoch(callbacks: Any) -> None:
    keras_call = _ensure_call(callbacks, "train", sys._getframe(_CALLER_FRAMES))
    if keras_call is not None:
        keras_call.begin_epoch(callbacks)


def _end_epoch(callbacks: Any) -> None:
    keras_call = _innermost_call_of(callbacks)
    if keras_call is not None:
        keras_call.end_epoch()


def _begin_batch_callback(mode: str) -> Callback:
    def callback(callbacks: Any) -> None:
        keras_call = _ensure_call(callbacks, mode, sys._getframe(_CALLER_FRAMES))
        if keras_call is not None:
            keras_call.has_batch_methods = True
            keras_call.begin_batch()

    return callback


def _end_batch(callbacks: Any) -> None:
    keras_call = _innermost_call_of(callbacks)
    if keras_call is not None:
        keras_call.end_batch()


def _batch_hook(callbacks: Any, mode: str, hook: str) -> None:
    """Begin or end a batch in graph mode, where Keras has one method for both."""
    begins = hook == "begin" and mode in _MODES
    keras_call = (
        _ensure_call(callbacks, mode, sys._getframe(_CALLER_FRAMES)) if begins else _innermost_call_of(callbacks)
    )
    if keras_call is None or keras_call.has_batch_methods:
        return
    if hook == "begin":
        keras_call.begin_batch()
    else:
        keras_call.end_batch()


_CALLBACKS: dict[str, Callback] = {
    "on_epoch_begin": _begin_epoch,
    "on_epoch_end": _end_epoch,
    "_call_batch_hook": _batch_hook,
}
for _mode in _MODES:
    _CALLBACKS["on_%s_begin" % _mode] = _begin_callback(_mode)
    _CALLBACKS["on_%s_end" % _mode] = _end_callback(_mode)
    _CALLBACKS["on_%s_batch_begin" % _mode] = _begin_batch_callback(_mode)
    _CALLBACKS["on_%s_batch_end" % _mode] = _end_batch


def patch_callbacks(module: ModuleType) -> None:
    """Observe the list of callbacks, which ``module`` defines."""
    cls = getattr(module, "CallbackList", None)
    if isinstance(cls, type) and cls.__module__ == module.__name__:
        in_child(_after_fork)
        for name, callback in _CALLBACKS.items():
            call_observer.observe(cls, name, callback, 3 if callback is _batch_hook else 1)


# -- helpers -------------------------------------------------------------------------------------


def _tracker(kind: int, is_budgeted: bool) -> Tracker:
    """Return the tracker of ``kind``, with a channel if possible."""
    tracker = core.tracker(kind, is_budgeted)
    tracker.open()
    return tracker


def _is_eager() -> bool:
    """Return whether steps run eagerly: then only a profiler session can trace them."""
    context = sys.modules.get(_CONTEXT)
    return context is not None and bool(context.executing_eagerly())


def _steps_per_execution(model: Any) -> int:
    """Return how many batches Keras runs in one call."""
    value: Any = getattr(model, "_steps_per_execution", None)
    if value is None:
        value = getattr(model, "steps_per_execution", None)
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
    """End open Keras calls as failed at the end of the process."""
    for keras_call in list(_open_calls):
        keras_call.end(layout.FLAG_FAILED)


def _after_fork() -> None:
    """Forget the parent's Keras calls in a forked child, which may go on with one of them."""
    _open_calls.clear()
    _unused_ordinals.clear()
