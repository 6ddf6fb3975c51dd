"""One traced run: what is kept of it, and what it cost us."""

from __future__ import annotations

from . import core, exclusive, fields, graph, layout
from .clock import mono, real
from .guard import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .ring import Channel
    from .tracker import Tracker

#: Numbers of TensorFlow's fields: RunOptions.trace_level, RunOptions.report_tensor_allocations_upon_oom, RunMetadata.step_stats.
TRACE_LEVEL, REPORT_ON_OOM, STEP_STATS = 1, 7, 1


def span_key(feeds: int, fetches: int, targets: int) -> int:
    """Return the key of a run with so many feeds, fetches and targets."""
    return min(feeds, 4095) << 20 | min(fetches, 1023) << 10 | min(targets, 1023)


def with_level(options: bytes, level: int) -> bytes:
    """Return the bytes ``options`` of a RunOptions with another trace level: of a number the last one counts."""
    return options + b"\x08" + fields.encoded(level)


def shows_statistics(session: Any, options: bytes) -> bool:
    """Tell whether the job itself gets step statistics of a run with these options, though it traces nothing."""
    if fields.last(options, REPORT_ON_OOM):
        return True
    config = getattr(session, "_config", None)
    return config is not None and bool(config.graph_options.build_cost_model > 0)


class Record(object):
    """One run that is traced, because the policy says so or because the job asked for it itself (``asked``)."""

    __slots__ = (
        "asked",
        "begun",
        "duration",
        "flags",
        "key",
        "level",
        "ordinal",
        "own",
        "start",
        "start_real",
        "tracker",
    )

    def __init__(self, tracker: Tracker, ordinal: int, key: int, level: int, asked: bool, begun: int) -> None:
        self.tracker = tracker
        self.ordinal = ordinal
        self.key = key
        self.asked = asked
        self.level = level
        self.begun = begun
        self.flags = layout.FLAG_TRACED
        self.start = self.start_real = self.duration = self.own = 0
        if asked and level > layout.LEVEL_SOFTWARE:
            exclusive.make_room()

    def starts(self) -> None:
        """The run starts now."""
        self.start_real, self.start = real(), mono()
        self.own = self.start - self.begun

    def ends(self, flags: int = 0) -> None:
        """The run has ended, with further span flags."""
        self.duration = mono() - self.start
        self.flags |= flags
        if self.level == layout.LEVEL_FULL and not self.asked:
            exclusive.release()

    def keep(self, session: Any, raw: bytes | None) -> None:
        """Put the span, and ``raw``, the run's RunMetadata, with what is new of the session's graph; None: there is no such."""
        tracker = self.tracker
        put_at = mono()
        tracker.put(layout.RUN, self.start, self.duration, self.ordinal, self.key, self.flags)
        channel = tracker.channel
        if channel is not None and raw is not None and tracker.tracing:
            thread = core.thread_id()
            kept = channel.put(
                layout.RUN_METADATA,
                raw,
                self.ordinal,
                self.start,
                self.start_real,
                self.duration,
                thread,
                self.key,
                layout.RUN,
            )
            if not kept:
                channel.lose_trace(put=True)
            _send_graph(session, channel)
        self.own += mono() - put_at
        tracker.traced(self.key, self.duration, self.own, self.asked)


@guarded
def _send_graph(session: Any, channel: Channel) -> None:
    graph.ensure_sent(session.graph, channel)


def chosen_level(level: int, tf_session: Any) -> int:
    """Return the level at which a run is traced: FULL only when the process's one profiler session is surely ours."""
    if level == layout.LEVEL_FULL and exclusive.take(tf_session):
        return layout.LEVEL_FULL
    return layout.LEVEL_SOFTWARE
