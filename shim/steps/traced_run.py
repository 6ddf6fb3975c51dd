"""One traced run: its data and its cost."""

from __future__ import annotations

from ...formats import layout
from ..clock import mono, real
from . import window
from .thread_state import local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ..channel.ring import Channel
    from ..pacing.tracker import Tracker
    from ..try_lock import Hold


class TracedRun(object):
    """One traced run.

    ``requested_by_job``: the job itself requested the trace. ``work_start``: when our work for it
    began (ns). ``hold``: the profiler session, held for the run. ``claims_session``: the job's
    trace uses the profiler session.
    """

    def __init__(
        self,
        tracker: Tracker,
        ordinal: int,
        key: int,
        requested_by_job: bool,
        work_start: int,
        hold: Hold | None = None,
        claims_session: bool = False,
    ) -> None:
        self.tracker = tracker
        self.ordinal = ordinal
        self.key = key
        self.requested_by_job = requested_by_job
        self.work_start = work_start
        self.flags = layout.FLAG_TRACED | (layout.FLAG_REQUESTED if requested_by_job else 0)
        self.start = self.start_real = self.duration = self.own_ns = 0
        self.hold = hold
        self.claim = window.claim() if claims_session else None

    def mark_start(self) -> None:
        """Record the start of the run."""
        self.start_real, self.start = real(), mono()
        self.own_ns = self.start - self.work_start

    def mark_end(self, flags: int = 0) -> None:
        """Record the end of the run, with further span flags."""
        self.duration = mono() - self.start
        self.flags |= flags
        self.claim = self.hold = None

    def put(self, record_kind: int, raw: bytes | None, batch: Any, send_graph: Callable[[Channel], object]) -> None:
        """Put the span, the record ``raw`` of ``record_kind``, and what ``send_graph`` sends.

        ``raw`` is None for a failed run: then only the span is put. If ``batch`` is not None, the
        run is recorded as this batch.
        """
        tracker = self.tracker
        put_start = mono()
        tracker.put(tracker.kind, self.start, self.duration, self.ordinal, self.key, self.flags)
        channel, pacer = tracker.channel, tracker.pacer
        is_off = pacer is None or pacer.policy.mode == layout.MODE_OFF
        if channel is None or raw is None or (is_off and self.requested_by_job):
            tracker.spend(self.own_ns + mono() - put_start)
            return
        try:
            self._put_record(channel, record_kind, raw, batch)
            send_graph(channel)
        finally:
            self.own_ns += mono() - put_start
            tracker.note_traced(self.key, self.duration, self.own_ns, self.requested_by_job)

    def _put_record(self, channel: Channel, record_kind: int, raw: bytes, batch: Any) -> None:
        """Put the record ``raw``, or count the loss."""
        tracker = self.tracker
        if batch is not None:
            batch.has_run = True
        kind, ordinal = (tracker.kind, self.ordinal) if batch is None else (batch.tracker.kind, batch.ordinal)
        was_put: bool | None = None
        try:
            times = self.start, self.start_real, self.duration
            was_put = channel.put(record_kind, raw, ordinal, *times, channel.threads.tid, self.key, kind)
        finally:
            if not was_put:
                channel.count_lost_trace(record_counted=was_put is not None)


def enclosing_batch() -> Any:
    """Return the thread's batch if no run of it is recorded: the next traced run is."""
    state = local.thread_state
    # A single batch, such as train_on_batch, is an outermost call; no window can trace its step.
    step = state.loops[-1].batch if state.loops else getattr(state.outermost_call(), "step", None)
    return None if step is None or step.needs_window or step.has_run else step
