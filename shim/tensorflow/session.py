"""Session runs: every path through a TensorFlow session ends in a call that is replaced here."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

from ...formats import layout
from ...formats.run_keys import fetches_key, with_feeds
from .. import core
from ..cpython.tracebacks import mimic, strip_our_frames
from ..guard import guarded
from ..pacing.tracker import Tracker
from ..steps import observer
from ..steps.step import Step
from ..weak_table import WeakTable
from . import callables
from .measured_call import TracedCall, measure, with_level
from .runs import LAST_RUN, RunSignatures

Original = Callable[..., Any]

#: The RunMetadata (bytes) that the job is to find in a buffer of its own.
_shown_metadata = WeakTable()


def patch(module: Any) -> None:
    """Measure and trace the sessions of ``tensorflow.python.client.session``."""
    base, tf_session = module.BaseSession, module.tf_session
    _make_buffers_uninterruptible(tf_session)
    signatures = RunSignatures(tf_session)
    core.replace(tf_session, "TF_GetBuffer", _get_buffer)
    core.replace(base, "_call_tf_sessionrun", lambda original: measured_run(original, signatures, tf_session))
    observer.observe(base, "_call_tf_sessionprun", _partial_run_called, 4, observes_end=True)
    if hasattr(base, "_Callable"):
        callables.patch(base._Callable, signatures, tf_session)


def _make_buffers_uninterruptible(tf_session: Any) -> None:
    """Let no Python code run when a TF_Buffer is made or freed, in TensorFlow 1.15.

    Its class is made by SWIG, and has methods in Python. Their callers in C drop the exceptions
    that signal handlers raise in them.
    """
    buffer_class = vars(tf_session).get("TF_Buffer")
    if "__swig_setmethods__" in vars(buffer_class or object):
        core.replace(buffer_class, "__setattr__", lambda _: object.__setattr__)
        core.replace(buffer_class, "__del__", lambda _: bool)  # called without arguments


def measured_run(original: Original, signatures: RunSignatures, tf_session: Any) -> Original:
    """Return the replacement of ``BaseSession._call_tf_sessionrun``."""
    unknown_signature, find = signatures.unknown_signature, signatures.find

    @guarded
    def begin(tracker: Tracker, ordinal: int, key: int, arguments: tuple[Any, ...]) -> TracedCall | None:
        session, options, metadata = arguments[0], arguments[1], arguments[-1]
        job_options = b"" if options is None else bytes(tf_session.TF_GetBuffer(options))
        prepare = partial(_prepare, job_options, arguments)
        run = TracedCall(tracker, ordinal, key, session, tf_session)
        return run if run.prepare(prepare, job_options, metadata) else None

    # Most runs have the signature of the last run of their session, and are only counted.
    def _call_tf_sessionrun(
        self: Any, options: Any, feed_dict: Any, fetch_list: Any, target_list: Any, run_metadata: Any
    ) -> Any:
        ordinal = 0
        try:
            signature = self.__dict__.get(LAST_RUN, unknown_signature)
            if fetch_list != signature.fetches or target_list != signature.targets:
                signature = find(self, fetch_list, target_list)
            if options is None:
                ordinal = signature.tracker.take_untimed()
            if ordinal:
                return original(self, options, feed_dict, fetch_list, target_list, run_metadata)
            tracker, key = signature.tracker, with_feeds(signature.key, len(feed_dict))
            arguments = (self, options, feed_dict, fetch_list, target_list, run_metadata)
            return measure(tracker, key, options is not None, begin, original, arguments)
        except BaseException as error:
            if ordinal:
                signature.tracker.put_failed(ordinal, with_feeds(signature.key, len(feed_dict)))
            strip_our_frames(error, original)
            raise

    return mimic(_call_tf_sessionrun, original, "TF_SessionRun_wrapper")


def _prepare(job_options: bytes, arguments: tuple[Any, ...], run: TracedCall, level: int) -> None:
    """Replace options without a trace level, and add metadata."""
    session, options, *others, metadata = arguments
    run.show = None if metadata is None else partial(_shown_metadata.set, metadata)
    if not run.requested_by_job:
        options = run.tf_session.TF_NewBufferFromString(with_level(job_options, level))
        run.own_buffers.append(options)
    if metadata is None:
        metadata = run.tf_session.TF_NewBuffer()
        run.own_buffers.append(metadata)
    run.arguments, run.keywords = (session, options, *others, metadata), {}
    get_buffer = run.tf_session.TF_GetBuffer
    run.raw = lambda: bytes(get_buffer(metadata))


def _get_buffer(original: Original) -> Original:
    """Return the replacement of ``TF_GetBuffer``, which hides our statistics from the job."""

    def TF_GetBuffer(buffer: Any) -> Any:  # noqa: N802 - it replaces this function
        shown = _shown_metadata.get(buffer)
        return original(buffer) if shown is None else shown

    return TF_GetBuffer


def _partial_run_called(_session: Any, _handle: Any, feed_dict: Any, fetch_list: Any) -> observer.EndCallback:
    """Measure a partial run, which takes no options and so cannot be traced."""
    tracker = core.tracker(layout.PARTIAL_RUN, False)
    key = with_feeds(fetches_key(len(fetch_list)), len(feed_dict))
    step = Step(tracker, tracker.next(), key, needs_window=False)
    return observer.EndCallback(lambda failed: step.end(layout.FLAG_FAILED if failed else 0))
