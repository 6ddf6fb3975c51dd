"""Session runs: every path through a TensorFlow session ends in a call that is replaced here."""

from __future__ import annotations

from ...formats import layout, pb_wire
from .. import core
from ..clock import mono
from ..guard import guarded
from ..pacing.current_policy import POLICY
from ..tracebacks import mimic, strip_our_frames
from . import callables, tf_buffer
from .run_kinds import with_feeds
from .runs import Runs, RunSignature
from .traced_run import STEP_STATS, TRACE_LEVEL, TracedRun, chosen_level, shows_statistics, with_level

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ..pacing.tracker import Tracker

    Original = Callable[..., Any]

_PARTIAL, _FAILED = layout.PARTIAL_RUN, layout.FLAG_FAILED


def patch(module: Any) -> None:
    """Measure and trace the sessions of ``tensorflow.python.client.session``."""
    base, tf_session = module.BaseSession, module.tf_session
    runs = Runs(tf_session)
    core.replace(base, "_call_tf_sessionrun", lambda original: _run(original, runs, tf_session))
    core.replace(base, "_call_tf_sessionprun", lambda original: _partial_run(original, core.tracker(_PARTIAL, False)))
    callables.patch(base._Callable, runs, tf_session)


def _run(original: Original, runs: Runs, tf_session: Any) -> Original:
    """Return the replacement of ``BaseSession._call_tf_sessionrun``; it runs at every step."""
    measured, find, unknown = _measured(original, tf_session), runs.find, runs.unknown

    def _call_tf_sessionrun(
        self: Any, options: Any, feed_dict: Any, fetch_list: Any, target_list: Any, run_metadata: Any
    ) -> Any:
        signature = self.__dict__.get("_tfprof_run", unknown)
        if fetch_list != signature.fetches or target_list != signature.targets:
            signature = find(self, fetch_list, target_list)
        tracker = signature.tracker
        untimed = tracker.untimed
        if options is None:
            for ordinal in untimed:
                tracker.words[tracker.count_at] = ordinal
                try:
                    return original(self, options, feed_dict, fetch_list, target_list, run_metadata)
                except BaseException as error:
                    tracker.put_failed(ordinal, with_feeds(signature.key, len(feed_dict)))
                    strip_our_frames(error, original)
                    raise
        ordinal = tracker.next()
        if ordinal < tracker.trigger and options is None and tracker.words[POLICY] == tracker.generation:
            key = with_feeds(signature.key, len(feed_dict))
            if key in tracker.known_keys:
                start = mono()
                try:
                    result = original(self, options, feed_dict, fetch_list, target_list, run_metadata)
                except BaseException as error:
                    tracker.put(tracker.kind, start, mono() - start, ordinal, key, _FAILED)
                    strip_our_frames(error, original)
                    raise
                tracker.put_timed(start, mono() - start, ordinal, key, untimed)
                return result
        try:
            return measured(self, signature, ordinal, options, feed_dict, fetch_list, target_list, run_metadata)
        except BaseException as error:
            strip_our_frames(error, original)
            raise

    return mimic(_call_tf_sessionrun, original, "TF_SessionRun_wrapper")


def _measured(original: Original, tf_session: Any) -> Original:
    """Return the slow path of a run: it may be traced."""

    def measured(
        session: Any,
        signature: RunSignature,
        ordinal: int,
        options: Any,
        feed_dict: Any,
        fetch_list: Any,
        target_list: Any,
        run_metadata: Any,
    ) -> Any:
        tracker, key = signature.tracker, with_feeds(signature.key, len(feed_dict))
        buffers = _RunBuffers.of(tf_session, tracker, session, ordinal, key, options, run_metadata)
        if buffers is None:
            return untraced(session, tracker, ordinal, key, options, feed_dict, fetch_list, target_list, run_metadata)
        flags = _FAILED
        try:
            buffers.record.mark_start()
            try:
                result = original(session, buffers.options, feed_dict, fetch_list, target_list, buffers.metadata)
                flags = 0
                return result
            finally:
                buffers.record.mark_end(flags)
                buffers.finish(session, run_metadata)
        finally:
            buffers.free()

    def untraced(
        session: Any,
        tracker: Tracker,
        ordinal: int,
        key: int,
        options: Any,
        feed_dict: Any,
        fetch_list: Any,
        target_list: Any,
        run_metadata: Any,
    ) -> Any:
        flags = _FAILED
        start = mono()
        try:
            result = original(session, options, feed_dict, fetch_list, target_list, run_metadata)
            flags = 0
            return result
        finally:
            duration = mono() - start
            tracker.put(tracker.kind, start, duration, ordinal, key, flags)
            if not flags:
                tracker.note_untraced(key, duration)

    return measured


class _RunBuffers(object):
    """The buffers of a traced run that replace the job's."""

    __slots__ = ("buffers", "metadata", "options", "record", "tf_session")

    def __init__(self, tf_session: Any, record: TracedRun) -> None:
        self.tf_session = tf_session
        self.record = record
        self.options: Any = None
        self.metadata: Any = None
        self.buffers: list[Any] = []

    @classmethod
    @guarded
    def of(
        cls,
        tf_session: Any,
        tracker: Tracker,
        session: Any,
        ordinal: int,
        key: int,
        options: Any,
        run_metadata: Any,
    ) -> _RunBuffers | None:
        """Return the buffers for this run, None when it is not traced."""
        begun = mono()
        given = b"" if options is None else bytes(tf_session.TF_GetBuffer(options))
        requested_level = pb_wire.last_varint(given, TRACE_LEVEL)
        level, hold = tracker.level(ordinal, key), None
        if requested_level:
            level = requested_level
        elif level is None or (run_metadata is not None and not cls._separable(tf_session, session, given)):
            return None
        else:
            level, hold = chosen_level(level, tf_session)
        buffers = cls(tf_session, TracedRun(tracker, ordinal, key, level, bool(requested_level), begun, hold))
        buffers.options, buffers.metadata = options, run_metadata
        try:
            if not requested_level:
                buffers.options = buffers.mine(tf_session.TF_NewBufferFromString(with_level(given, level)))
            if not requested_level or run_metadata is None:
                buffers.metadata = buffers.mine(tf_session.TF_NewBuffer())
        except BaseException:
            buffers.record.mark_end()
            buffers.free()
            raise
        return buffers

    @staticmethod
    def _separable(tf_session: Any, session: Any, given: bytes) -> bool:
        """Return whether our statistics can be removed from the job's metadata."""
        return tf_buffer.usable(tf_session) and not shows_statistics(session, given)

    def mine(self, made: Any) -> Any:
        """Register ``made``, a buffer of ours, to be freed."""
        self.buffers.append(made)
        return made

    @guarded
    def finish(self, session: Any, run_metadata: Any) -> None:
        """Give the job the metadata that it expects; put the whole metadata into the channel."""
        raw = None
        try:
            if not self.record.flags & _FAILED:
                raw = bytes(self.tf_session.TF_GetBuffer(self.metadata))
                if run_metadata is not None and run_metadata is not self.metadata:
                    tf_buffer.give(self.tf_session, run_metadata, pb_wire.without_field(raw, STEP_STATS))
        finally:
            self.record.keep(session, raw)

    @guarded
    def free(self) -> None:
        """Free our own buffers."""
        while self.buffers:
            self.tf_session.TF_DeleteBuffer(self.buffers.pop())


def _partial_run(original: Original, tracker: Tracker) -> Original:
    """Return the replacement of ``BaseSession._call_tf_sessionprun``.

    Partial runs take no options and are only measured.
    """

    def _call_tf_sessionprun(self: Any, handle: Any, feed_dict: Any, fetch_list: Any) -> Any:
        ordinal = tracker.next()
        key = with_feeds(min(len(fetch_list), 15) << 24, len(feed_dict))
        if tracker.channel is None:
            tracker.level(ordinal, key)
        start = mono()
        flags = _FAILED
        try:
            result = original(self, handle, feed_dict, fetch_list)
            flags = 0
        except BaseException as error:
            strip_our_frames(error, original)
            raise
        else:
            return result
        finally:
            tracker.put(_PARTIAL, start, mono() - start, ordinal, key, flags)

    return mimic(_call_tf_sessionprun, original, "TF_SessionPRun_wrapper")
