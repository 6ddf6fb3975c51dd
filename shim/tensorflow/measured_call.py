"""A timed run of a graph: measured, and traced if it is selected or if the job requests a trace."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Callable, Tuple

from ...formats import layout, pb_wire
from .. import guard
from ..channel.ring import Channel
from ..clock import mono, real
from ..guard import guarded
from ..pacing.tracker import Tracker
from ..steps import window
from ..steps.activities import announce_threads
from ..steps.thread_state import local
from ..try_lock import Hold
from . import graph, recording

#: Numbers of TensorFlow's fields: RunOptions.trace_level,
#: RunOptions.report_tensor_allocations_upon_oom, RunMetadata.step_stats.
TRACE_LEVEL, _REPORT_ON_OOM, _STEP_STATS = 1, 7, 1
Original = Callable[..., Any]
Arguments = Tuple[Any, ...]
_BATCH_RUN_KINDS = (layout.TRAIN, layout.RUN)  # kinds of runs that a Keras batch consists of
_FAILED = layout.FLAG_FAILED


def measure(
    tracker: Tracker, key: int, may_be_requested: bool, begin: Original, original: Original, arguments: Arguments
) -> Any:
    """Call ``original`` as a timed run and return its result.

    ``begin(tracker, ordinal, key, arguments)`` returns a traced run, None if it is not traced.
    ``may_be_requested``: the job may request the trace.
    """
    ordinal = tracker.next()
    is_untraced = not may_be_requested and tracker.is_surely_untraced(ordinal, key)
    traced_call = None if is_untraced else begin(tracker, ordinal, key, arguments)
    if traced_call is not None:
        return traced_call.call(original)
    start = mono()
    try:
        result = original(*arguments)
    except BaseException:
        tracker.put(tracker.kind, start, mono() - start, ordinal, key, _FAILED)
        raise
    duration = mono() - start
    if is_untraced:
        tracker.put_timed(start, duration, ordinal, key)
    else:
        # A run with options of the job's does not stand for those that were counted before it.
        counted = 0 if may_be_requested else tracker.ordinals.take_counted()
        tracker.put(tracker.kind, start, duration, ordinal, key, 0, 0, 1, counted)
        tracker.note_untraced(key, duration)
    return result


class TracedCall(object):
    """A traced run of ``session``: a call with arguments of ours.

    The function that prepares it sets ``arguments`` and ``keywords``, ``raw``, which returns the
    RunMetadata, and ``show``, which gives the job what it expects of that, if anything.
    ``requested_by_job``: the job itself requested the trace. ``work_start``: when our work for it
    began (ns). ``hold``: the profiler session, held for the run. ``claim``: that of a trace that
    the job requested.
    """

    arguments: Arguments
    keywords: dict[str, Any]
    raw: Callable[[], bytes | None]
    show: Callable[[bytes], object] | None
    hold: Hold | None = None
    claim: window.Claim | None = None
    requested_by_job = False
    flags = layout.FLAG_TRACED
    start = start_real = duration = own_ns = 0

    def __init__(self, tracker: Tracker, ordinal: int, key: int, session: Any, tf_session: Any) -> None:
        self.work_start = mono()
        self.tracker = tracker
        self.ordinal = ordinal
        self.key = key
        self.session = session
        self.tf_session = tf_session
        self.own_buffers: list[Any] = []  # freed after the call

    def prepare(self, function: Callable[[TracedCall, int], object], options: bytes, metadata: Any) -> bool:
        """Prepare the run by ``function(self, level)``; return False if it is not traced.

        ``options`` are the job's RunOptions, ``metadata`` is where it expects the RunMetadata, if
        it does.
        """
        requested_level = pb_wire.last_varint(options, TRACE_LEVEL)
        level = self.tracker.level(self.ordinal, self.key, batch=batch_of(self.tracker))
        try:
            if requested_level:
                level, self.requested_by_job = requested_level, True
                self.flags |= layout.FLAG_REQUESTED
                if level > layout.LEVEL_SOFTWARE:  # this trace uses the profiler session
                    self.claim = window.claim()
            elif level is None or (metadata is not None and _shows_statistics(self.session, options)):
                return False
            else:
                level, self.hold = chosen_level(level, self.tf_session)
            function(self, level)
        except BaseException:
            self.free()
            raise
        return True

    @guarded
    def free(self) -> None:
        """Release the profiler session, and free our own buffers."""
        self.claim = self.hold = None
        while self.own_buffers:
            self.tf_session.TF_DeleteBuffer(self.own_buffers.pop())

    def call(self, original: Callable[..., Any]) -> Any:
        """Call ``original`` and return its result."""
        flags = _FAILED
        try:
            self.start_real, self.start = real(), mono()
            self.own_ns = self.start - self.work_start
            try:
                result = original(*self.arguments, **self.keywords)
                flags = 0
                return result
            finally:
                self.duration = mono() - self.start
                self.flags |= flags
                self.claim = self.hold = None
                self._finish()
        finally:
            self.free()

    @guarded
    def _finish(self) -> None:
        """Give the job the metadata that it expects; put the whole metadata into the channel."""
        raw = None
        try:
            if not self.flags & _FAILED:
                raw = self.raw()
                if raw is not None and self.show is not None:
                    self.show(raw if self.requested_by_job else pb_wire.without_field(raw, _STEP_STATS))
        finally:
            self._put(raw)

    def _put(self, raw: bytes | None) -> None:
        """Put the span, the RunMetadata and the graph; a failed run has only the span."""
        tracker, put_start = self.tracker, mono()
        tracker.put(tracker.kind, self.start, self.duration, self.ordinal, self.key, self.flags)
        channel, selection = tracker.channel, tracker.selection
        is_off = selection is None or selection.pacer.policy.mode == layout.MODE_OFF
        if channel is None or raw is None or (is_off and self.requested_by_job):
            tracker.spend(self.own_ns + mono() - put_start)
            return
        try:
            self._put_record(channel, raw)
            graph.ensure_sent(self.session.graph, channel)
            announce_threads()
        finally:
            self.own_ns += mono() - put_start
            tracker.note_traced(self.key, self.duration, self.own_ns, self.requested_by_job)

    def _put_record(self, channel: Channel, raw: bytes) -> None:
        """Put the RunMetadata, as that of a batch if the run is part of one, or count the loss."""
        tracker, batch = self.tracker, batch_of(self.tracker)
        if batch is not None:
            batch.has_run = True
        kind, ordinal = (tracker.kind, self.ordinal) if batch is None else (batch.tracker.kind, batch.ordinal)
        times = self.start, self.start_real, self.duration
        about = ordinal, *times, channel.threads.tid, self.key, kind
        channel.put_trace(partial(channel.put, layout.RUN_METADATA, raw, *about))


def batch_of(tracker: Tracker) -> Any:
    """Return the batch as which a traced run of ``tracker`` is recorded, None for itself."""
    return enclosing_batch() if tracker.kind in _BATCH_RUN_KINDS else None


def enclosing_batch() -> Any:
    """Return the thread's batch if no run of it is recorded: the next traced run is."""
    state = local.thread_state
    # A single batch, such as train_on_batch, is an outermost call; no window can trace its step.
    step = state.loops[-1].batch if state.is_in_loop() else getattr(state.outermost_call(), "step", None)
    return None if step is None or step.needs_window or step.has_run else step


# -- the trace level in RunOptions, and the profiler session that a level needs ------------------


def with_level(options: bytes, level: int) -> bytes:
    """Return RunOptions bytes with another trace level: the last value of a field counts."""
    return options + b"\x08" + pb_wire.encode_varint(level)


def _shows_statistics(session: Any, options: bytes) -> bool:
    """Return whether the job gets step statistics even if it requests no trace of the run."""
    if pb_wire.last_varint(options, _REPORT_ON_OOM):
        return True
    config = getattr(session, "_config", None)
    return config is not None and bool(config.graph_options.build_cost_model > 0)


def chosen_level(level: int, tf_session: Any) -> tuple[int, Hold | None]:
    """Return the trace level of a run: FULL only with the profiler session, which is then held."""
    hold = window.reserve() if level == layout.LEVEL_FULL else None
    try:
        is_held = hold is not None and _is_profiler_free(tf_session)
        return (layout.LEVEL_FULL, hold) if is_held else (layout.LEVEL_SOFTWARE, None)
    finally:
        del hold  # a traceback that the job keeps must not hold it


@guarded
def _is_profiler_free(tf_session: Any) -> bool:
    """Start and end a session; return whether none was active, None after an unexpected error."""
    if hasattr(tf_session, "TFE_NewProfiler"):
        session = tf_session.TFE_NewProfiler()
        try:
            return bool(tf_session.TFE_ProfilerIsOk(session))
        finally:
            tf_session.TFE_DeleteProfiler(session)
    session = sys.modules[recording.MODULE].ProfilerSession()
    options = {"host_tracer_level": 0, "python_tracer_level": 0, "device_tracer_level": 0}
    try:
        recording.original_start(type(session))(session, "", options)
    except Exception as error:
        if type(error).__name__ not in recording.BUSY_ERRORS or guard.raised_by_job(error):
            raise
        return False
    session.stop()
    return True
