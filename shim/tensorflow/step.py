"""One step of Keras, a function or eager ops: measured, and traced in a window when selected."""

from __future__ import annotations

from ...formats import layout
from ...formats.layout import WORD
from ..clock import mono
from ..pacing.current_policy import POLICY
from ..pacing.sampling import TIMING_FACTOR
from . import window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..pacing.tracker import Tracker

_TRACED = WORD["traced"]


def begin(tracker: Tracker, key: int = 0, name: object = None, needs_window: bool = True) -> Step | CountedStep:
    """Begin a step, which is timed or only counted.

    ``name`` is what ``key`` stands for, if anything; ``needs_window`` is described in `Step`.
    """
    for ordinal in tracker.untimed:
        return CountedStep(tracker, ordinal, key) if needs_window else CountedRunStep(tracker, ordinal, key)
    ordinal = tracker.next()
    if name is not None and key not in tracker.names.published:
        tracker.announce_name(key, str(name))
    return Step(tracker, ordinal, key, needs_window, is_sampled=True)


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


class CountedRunStep(CountedStep):
    """A counted step that consists of session runs; it has a span if a run is traced."""

    __slots__ = ("has_run", "start")

    needs_window = False

    def __init__(self, tracker: Tracker, ordinal: int, key: int) -> None:
        super().__init__(tracker, ordinal, key)
        self.has_run = False  # whether a run is recorded as this step
        self.start = mono()

    def end(self, flags: int = 0, end_ns: int = 0) -> None:
        """Put the step's span, if any; the step ends now, or at ``end_ns`` if this is not 0."""
        if self.has_run:
            put_counted_run(self, flags, end_ns)
        else:
            super().end(flags)


def put_counted_run(step: Any, flags: int, end_ns: int = 0) -> None:
    """Put the span of a counted step of which a run is recorded."""
    duration = (end_ns or mono()) - step.start
    step.tracker.put_counted(step.start, duration, step.ordinal, step.key, flags | layout.FLAG_TRACED)


class Step(object):
    """A step that has begun; ``flags`` say whether it is traced.

    ``needs_window``: only a window can trace it. Otherwise it consists of session runs, and counts
    as traced if one of them is. ``is_sampled``: not each step of the kind is timed. The step counts
    as ``count`` steps.
    """

    __slots__ = (
        "count",
        "flags",
        "has_run",
        "is_paced",
        "is_sampled",
        "key",
        "needs_window",
        "ordinal",
        "start",
        "traced_at_start",
        "tracker",
    )

    def __init__(
        self,
        tracker: Tracker,
        ordinal: int,
        key: int,
        needs_window: bool,
        is_sampled: bool = False,
        count: int = 1,
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
        if window.current is not None or not (
            ordinal + count <= tracker.trigger
            and tracker.words[POLICY] == tracker.generation
            and key in tracker.known_keys
        ):
            self._decide_trace(needs_window)
        self.traced_at_start = tracker.words[_TRACED]  # number of traced steps of all kinds
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
        elif not self.needs_window and tracker.words[_TRACED] != self.traced_at_start:
            flags |= layout.FLAG_TRACED
        flags |= self.flags
        if not self.is_sampled or flags or self.is_paced:
            put_start = mono()
            tracker.put(tracker.kind, self.start, duration, self.ordinal, self.key, flags, parent, self.count)
            tracker.spend(TIMING_FACTOR * (mono() - put_start))
        else:
            tracker.put_timed(self.start, duration, self.ordinal, self.key, work_start)

    def _decide_trace(self, needs_window: bool) -> None:
        self.tracker.open()  # `window.begin` does not open it while another thread has a window
        if needs_window:
            self.is_paced, is_traced = window.begin(self.tracker, self.ordinal, self.key, self.count)
            self.flags = layout.FLAG_TRACED if is_traced else 0
