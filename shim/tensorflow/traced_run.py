"""One traced run: its data and its cost."""

from __future__ import annotations

import sys

from ...formats import layout, pb_wire
from .. import core
from ..clock import mono, real
from ..guard import guarded
from . import graph, profiler_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..channel.ring import Channel
    from ..pacing.tracker import Tracker
    from ..try_lock import Hold
    from .step import Step

_FUNCTION_MODULE = __package__ + ".function"  # loaded only if TensorFlow has functions
_BATCH_RUN_KINDS = (layout.TRAIN, layout.RUN)  # kinds of runs that a Keras batch consists of
#: Numbers of TensorFlow's fields: RunOptions.trace_level,
#: RunOptions.report_tensor_allocations_upon_oom, RunMetadata.step_stats.
TRACE_LEVEL, REPORT_ON_OOM, STEP_STATS = 1, 7, 1


def with_level(options: bytes, level: int) -> bytes:
    """Return RunOptions bytes with another trace level: the last value of a field counts."""
    return options + b"\x08" + pb_wire.encode_varint(level)


def shows_statistics(session: Any, options: bytes) -> bool:
    """Return whether the job gets step statistics even if it requests no trace of the run."""
    if pb_wire.last_varint(options, REPORT_ON_OOM):
        return True
    config = getattr(session, "_config", None)
    return config is not None and bool(config.graph_options.build_cost_model > 0)


class TracedRun(object):
    """One traced run.

    ``requested_by_job``: the job itself requested the trace. ``work_start``: when our work for it
    began (ns). ``hold``: the profiler session, held for the run.
    """

    __slots__ = (
        "claim",
        "duration",
        "flags",
        "hold",
        "key",
        "level",
        "ordinal",
        "own_ns",
        "requested_by_job",
        "start",
        "start_real",
        "tracker",
        "work_start",
    )

    def __init__(
        self,
        tracker: Tracker,
        ordinal: int,
        key: int,
        level: int,
        requested_by_job: bool,
        work_start: int,
        hold: Hold | None = None,
    ) -> None:
        self.tracker = tracker
        self.ordinal = ordinal
        self.key = key
        self.requested_by_job = requested_by_job
        self.level = level
        self.work_start = work_start
        self.flags = layout.FLAG_TRACED
        self.start = self.start_real = self.duration = self.own_ns = 0
        self.hold = hold
        self.claim = profiler_lock.claim() if requested_by_job and level > layout.LEVEL_SOFTWARE else None

    def mark_start(self) -> None:
        """Record the start of the run."""
        self.start_real, self.start = real(), mono()
        self.own_ns = self.start - self.work_start

    def mark_end(self, flags: int = 0) -> None:
        """Record the end of the run, with further span flags."""
        self.duration = mono() - self.start
        self.flags |= flags
        self.claim = self.hold = None

    def put(self, session: Any, raw: bytes | None) -> None:
        """Put the span, the RunMetadata ``raw`` and the new parts of the graph.

        ``raw`` is None for a failed run: then only the span is put.
        """
        tracker = self.tracker
        put_start = mono()
        tracker.put(tracker.kind, self.start, self.duration, self.ordinal, self.key, self.flags)
        channel = tracker.channel
        if channel is None or raw is None or not (tracker.is_tracing or not self.requested_by_job):
            tracker.spend(self.own_ns + mono() - put_start)
            return
        try:
            self._put_metadata(channel, raw)
            _send_graph(session, channel)
        finally:
            self.own_ns += mono() - put_start
            tracker.note_traced(self.key, self.duration, self.own_ns, self.requested_by_job)

    def _put_metadata(self, channel: Channel, raw: bytes) -> None:
        """Put the RunMetadata ``raw``, or count the loss."""
        tracker = self.tracker
        batch = _batch() if tracker.kind in _BATCH_RUN_KINDS else None
        kind, ordinal = (tracker.kind, self.ordinal) if batch is None else (batch.tracker.kind, batch.ordinal)
        was_put: bool | None = None
        try:
            was_put = channel.put(
                layout.RUN_METADATA,
                raw,
                ordinal,
                self.start,
                self.start_real,
                self.duration,
                core.thread_id(),
                self.key,
                kind,
            )
        finally:
            if not was_put:
                channel.count_lost_trace(record_counted=was_put is not None)


def _batch() -> Step | None:
    """Return the thread's Keras batch if no run of it is recorded: this run gets its number."""
    local = getattr(sys.modules.get(_FUNCTION_MODULE), "local", None)  # another thread may be about to load the module
    if local is None:
        return None
    state = local.thread_state
    # A single batch, such as train_on_batch, is an outermost call; no window can trace its step.
    step: Step | None = (
        state.keras_calls[-1].batch if state.keras_calls else getattr(state.outermost_call(), "step", None)
    )
    if step is None or step.needs_window or step.has_run:
        return None
    step.has_run = True
    return step


@guarded
def _send_graph(session: Any, channel: Channel) -> None:
    graph.ensure_sent(session.graph, channel)


def chosen_level(level: int, tf_session: Any) -> tuple[int, Hold | None]:
    """Return the trace level of a run: FULL only with the profiler session, which is then held."""
    hold = profiler_lock.take(tf_session) if level == layout.LEVEL_FULL else None
    return (layout.LEVEL_SOFTWARE if hold is None else layout.LEVEL_FULL), hold
