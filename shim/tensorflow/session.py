"""Session runs: every path through a TensorFlow session ends in a call that is replaced here."""

from __future__ import annotations

from ...formats import layout, pb_wire
from .. import core, native
from ..clock import mono
from ..guard import guarded
from ..pacing.current_policy import POLICY
from ..tracebacks import mimic, strip_our_frames
from . import callables, counted_calls, tf_buffer
from .run_kinds import with_feeds
from .runs import RunSignature, RunSignatures
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
    signatures = RunSignatures(tf_session)
    patch_runs(base, signatures, tf_session)
    core.replace(base, "_call_tf_sessionprun", lambda original: _partial_run(original, core.tracker(_PARTIAL, False)))
    callables.patch(base._Callable, signatures, tf_session)


def patch_runs(base: Any, signatures: RunSignatures, tf_session: Any) -> None:
    """Measure and trace the runs of sessions of class ``base``."""
    counted_calls.replace(
        base,
        "_call_tf_sessionrun",
        "TF_SessionRun_wrapper",
        lambda original: _run(original, signatures, tf_session),
        _run_wrapper,
        _run_counter(signatures),
    )


def _run(original: Original, signatures: RunSignatures, tf_session: Any) -> Original:
    """Return the function that runs a step of a session."""
    slow_path, signature_of = _slow_path(original, tf_session), signatures.of_run

    def run(session: Any, options: Any, feed_dict: Any, fetch_list: Any, target_list: Any, run_metadata: Any) -> Any:
        signature = signature_of(session, fetch_list, target_list)
        tracker = signature.tracker
        if options is None:
            for ordinal in tracker.untimed:
                try:
                    return original(session, options, feed_dict, fetch_list, target_list, run_metadata)
                except BaseException:
                    tracker.put_failed(ordinal, with_feeds(signature.key, len(feed_dict)))
                    raise
        ordinal = tracker.next()
        if ordinal < tracker.trigger and options is None and tracker.words[POLICY] == tracker.generation:
            key = with_feeds(signature.key, len(feed_dict))
            if key in tracker.known_keys:
                start = mono()
                try:
                    result = original(session, options, feed_dict, fetch_list, target_list, run_metadata)
                except BaseException:
                    tracker.put(tracker.kind, start, mono() - start, ordinal, key, _FAILED)
                    raise
                tracker.put_timed(start, mono() - start, ordinal, key)
                return result
        return slow_path(session, signature, ordinal, options, feed_dict, fetch_list, target_list, run_metadata)

    return run


def _run_wrapper(run: Original, original: Original) -> Original:
    """Return the replacement of ``BaseSession._call_tf_sessionrun`` where C code does not count."""

    def _call_tf_sessionrun(
        self: Any, options: Any, feed_dict: Any, fetch_list: Any, target_list: Any, run_metadata: Any
    ) -> Any:
        try:
            return run(self, options, feed_dict, fetch_list, target_list, run_metadata)
        except BaseException as error:
            strip_our_frames(error, original)
            raise

    return _call_tf_sessionrun


def _run_counter(signatures: RunSignatures) -> counted_calls.Counter | None:
    """Return the counter of runs like the last one of their session."""

    def report(session: Any, _options: Any, feed_dict: Any, fetch_list: Any, target_list: Any) -> None:
        signature = signatures.of_run(session, fetch_list, target_list)
        signature.tracker.put_last_failed(with_feeds(signature.key, len(feed_dict)))

    return None if native.module is None else counted_calls.Counter(native.module.run_needs_python, 5, report)


def _slow_path(original: Original, tf_session: Any) -> Original:
    """Return the slow path of a run: it may be traced."""

    def slow_path(
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
        buffers = _RunBuffers.for_run(tf_session, tracker, session, ordinal, key, options, run_metadata)
        if buffers is None:
            return run_untraced(
                session, tracker, ordinal, key, options, feed_dict, fetch_list, target_list, run_metadata
            )
        flags = _FAILED
        try:
            buffers.traced_run.mark_start()
            try:
                result = original(session, buffers.options, feed_dict, fetch_list, target_list, buffers.metadata)
                flags = 0
                return result
            finally:
                buffers.traced_run.mark_end(flags)
                buffers.finish(session, run_metadata)
        finally:
            buffers.free()

    def run_untraced(
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

    return slow_path


class _RunBuffers(object):
    """The buffers that replace the job's in a traced run."""

    __slots__ = ("metadata", "options", "own_buffers", "tf_session", "traced_run")

    def __init__(self, tf_session: Any, traced_run: TracedRun) -> None:
        self.tf_session = tf_session
        self.traced_run = traced_run
        self.options: Any = None
        self.metadata: Any = None
        self.own_buffers: list[Any] = []

    @classmethod
    @guarded
    def for_run(
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
        work_start = mono()
        job_options = b"" if options is None else bytes(tf_session.TF_GetBuffer(options))
        requested_level = pb_wire.last_varint(job_options, TRACE_LEVEL)
        level, hold = tracker.level(ordinal, key), None
        if requested_level:
            level = requested_level
        elif level is None or (run_metadata is not None and not cls._is_separable(tf_session, session, job_options)):
            return None
        else:
            level, hold = chosen_level(level, tf_session)
        buffers = cls(tf_session, TracedRun(tracker, ordinal, key, level, bool(requested_level), work_start, hold))
        buffers.options, buffers.metadata = options, run_metadata
        try:
            if not requested_level:
                buffers.options = buffers.register(tf_session.TF_NewBufferFromString(with_level(job_options, level)))
            if not requested_level or run_metadata is None:
                buffers.metadata = buffers.register(tf_session.TF_NewBuffer())
        except BaseException:
            buffers.traced_run.mark_end()
            buffers.free()
            raise
        return buffers

    @staticmethod
    def _is_separable(tf_session: Any, session: Any, job_options: bytes) -> bool:
        """Return whether our statistics can be removed from the job's metadata."""
        return tf_buffer.is_usable(tf_session) and not shows_statistics(session, job_options)

    def register(self, buffer: Any) -> Any:
        """Register ``buffer``, one of ours, to be freed, and return it."""
        self.own_buffers.append(buffer)
        return buffer

    @guarded
    def finish(self, session: Any, run_metadata: Any) -> None:
        """Give the job the metadata that it expects; put the whole metadata into the channel."""
        raw = None
        try:
            if not self.traced_run.flags & _FAILED:
                raw = bytes(self.tf_session.TF_GetBuffer(self.metadata))
                if run_metadata is not None and run_metadata is not self.metadata:
                    tf_buffer.set_content(self.tf_session, run_metadata, pb_wire.without_field(raw, STEP_STATS))
        finally:
            self.traced_run.put(session, raw)

    @guarded
    def free(self) -> None:
        """Free our own buffers."""
        while self.own_buffers:
            self.tf_session.TF_DeleteBuffer(self.own_buffers.pop())


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
