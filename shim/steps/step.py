"""One step of Keras, a function or eager ops: measured, and traced in a window when selected."""

from __future__ import annotations

from weakref import ref
from zlib import crc32

from ...formats import layout
from .. import core
from ..clock import mono
from ..pacing.sampling import TIMING_FACTOR
from ..pacing.tracker import Tracker
from . import window
from .thread_state import ThreadState, no_call


def begin(tracker: Tracker, key: int = 0, name: object = None, needs_window: bool = True) -> Step | CountedStep:
    """Begin a step, which may be only counted if it ``needs_window``; ``name``: that of ``key``."""
    ordinal = tracker.take_untimed() if needs_window else 0
    if ordinal:
        return CountedStep(tracker, ordinal, key)
    ordinal = tracker.next()
    if name is not None and key not in tracker.published_keys:
        tracker.announce_name(key, str(name))
    return Step(tracker, ordinal, key, needs_window, is_sampled=needs_window)


class CountedStep(object):
    """A step that is only counted; ``ordinal`` is its number."""

    __slots__ = ("key", "ordinal", "tracker")

    needs_window = True  # no session run is recorded as this step

    def __init__(self, tracker: Tracker, ordinal: int, key: int) -> None:
        self.tracker = tracker
        self.ordinal = ordinal
        self.key = key

    def end(self, flags: int = 0, end_ns: int = 0) -> None:
        """Report a failure; the time ``end_ns`` of the step's end does not matter."""
        del end_ns
        if flags:
            self.tracker.put_failed(self.ordinal, self.key)


class Step(object):
    """A step that has begun; ``flags`` say whether it is traced.

    ``needs_window``: only a window can trace it. Otherwise it consists of session runs, and counts
    as traced if one of them is. ``is_sampled``: not each step of the kind is timed. The step counts
    as ``count`` steps.
    """

    def __init__(
        self, tracker: Tracker, ordinal: int, key: int, needs_window: bool, is_sampled: bool = False, count: int = 1
    ) -> None:
        self.tracker = tracker
        self.ordinal = ordinal
        self.key = key
        self.flags = 0
        self.is_paced = False  # whether the pacer gets its duration
        self.has_run = False  # whether a run is recorded as this step
        self.needs_window = needs_window
        self.is_sampled = is_sampled
        self.count = count
        if window.current is not None or not tracker.is_surely_untraced(ordinal, key, count):
            tracker.open()  # `window.begin` does not open it while another thread has a window
            if needs_window:
                self.is_paced, is_traced = window.begin(tracker, ordinal, key, count) or (False, False)
                self.flags = layout.FLAG_TRACED if is_traced else 0
        self.start = mono()

    def end(self, flags: int = 0, parent: int = 0, end_ns: int = 0) -> None:
        """Put the step's span; the step ends now, or at ``end_ns`` if this is not 0."""
        work_start = mono()
        duration = (end_ns or work_start) - self.start
        tracker = self.tracker
        for _ in range(self.count - 1):
            tracker.next()
        if self.flags:
            window.end_step(self, duration, self.count)
        elif self.is_paced:
            tracker.note_untraced(self.key, duration)
        elif self.has_run:
            flags |= layout.FLAG_TRACED
        flags |= self.flags
        if not self.is_sampled or flags or self.is_paced:
            put_start = mono()
            about = tracker.kind, self.start, duration, self.ordinal, self.key, flags, parent, self.count
            tracker.put(*about, tracker.ordinals.take_counted() if self.is_sampled and not flags else 0)
            tracker.spend(TIMING_FACTOR * (mono() - put_start))
            tracker.decide_if_due(self.ordinal)
        else:
            tracker.put_timed(self.start, duration, self.ordinal, self.key, work_start)


class OutermostStep(object):
    """A thread's running step outside of loops; no other step of the thread begins within it."""

    __slots__ = ("__weakref__", "step", "thread_state")

    def __init__(self, state: ThreadState, kind: int, name: object = None, needs_window: bool = True) -> None:
        self.thread_state = state
        self.step: Step | CountedStep | None = None
        tracker = core.tracker(kind, needs_window)
        state.outermost_call = ref(self)
        self.step = begin(tracker, 0 if name is None else key_of(name), name, needs_window)

    def leave(self) -> None:
        """Let other steps begin in the thread, even if this one has not ended; idempotent."""
        if self.thread_state.outermost_call() is self:
            self.thread_state.outermost_call = no_call

    def end(self, failed: bool, end_ns: int = 0) -> None:
        """End the step, now or at ``end_ns``."""
        self.leave()
        if self.step is not None:
            self.step.end(layout.FLAG_FAILED if failed else 0, end_ns=end_ns)


def key_of(name: object) -> int:
    """Return the span key of steps with this name."""
    return crc32(str(name).encode())
