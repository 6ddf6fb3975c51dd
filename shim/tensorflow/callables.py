"""Callables of a session; a traced call runs a variant of the callable that has a trace level.

Keras trains through callables in graph mode.
"""

from __future__ import annotations

import sys

from ...formats import layout, pb_wire
from .. import core, native
from ..clock import mono
from ..guard import called_back, guarded
from ..pacing.current_policy import POLICY
from ..tracebacks import mimic, strip_our_frames
from ..weak_table import WeakTable
from . import counted_calls
from .keras_callables import options_of
from .run_kinds import with_feeds
from .traced_run import STEP_STATS, TRACE_LEVEL, TracedRun, chosen_level, shows_statistics, with_level

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable

    from ..pacing.tracker import Tracker
    from .runs import RunSignatures

    Original = Callable[..., Any]

_FAILED, _SETUP = layout.FLAG_FAILED, layout.FLAG_SETUP
_OPTIONS = 4  # CallableOptions.run_options
#: Attributes of a callable: its variants, and the ordinals of calls that C code may count.
_VARIANTS, _ORDINALS = "_tfprof_variants", "_tfprof_ordinals"
_UNTRACEABLE = "a callable was made before tfprof was attached: its steps are timed but not traced"

#: Callables that have attributes of ours.
_callables = WeakTable()


def patch(cls: Any, signatures: RunSignatures, tf_session: Any) -> None:
    """Measure and trace the callables of class ``cls``."""
    core.at_disarm(lambda: _forget_all(tf_session))
    core.replace(cls, "__init__", lambda original: _init(original, signatures))
    counted_calls.replace(
        cls,
        "__call__",
        "TF_SessionRunCallable",
        lambda original: _call(original, signatures, tf_session),
        _call_wrapper,
        None if native.module is None else counted_calls.Counter(native.module.call_needs_python, 1, _report_failure),
    )
    core.replace(cls, "__del__", lambda original: _del(original, tf_session))


class _TracedVariants(object):
    """The options (bytes), span key and tracker of one callable, and its variants by trace level.

    ``is_traceable``: the options are known. ``run_options``: the job's RunOptions in them (bytes).
    """

    __slots__ = (
        "handles",
        "is_reported",
        "is_traceable",
        "key",
        "options",
        "requested_level",
        "run_options",
        "tracker",
    )

    def __init__(self, tracker: Tracker, key: int, options: bytes, is_traceable: bool = True) -> None:
        self.options = options
        self.is_traceable = is_traceable
        self.key = key
        self.tracker = tracker
        self.run_options = b"".join(pb_wire.field_contents(options, _OPTIONS))
        self.requested_level = pb_wire.last_varint(self.run_options, TRACE_LEVEL)
        self.handles: dict[int, Any] = {}
        self.is_reported = False  # whether `unknown-callable` was reported

    def handle(self, session: Any, level: int, tf_session: Any) -> tuple[Any, int]:
        """Return (handle of the variant at ``level``, span flag: FLAG_SETUP if it is new)."""
        handle = self.handles.get(level)
        if handle is not None:
            return handle, 0
        traced_options = with_level(b"", level)
        options = self.options + b"\x22" + pb_wire.encode_varint(len(traced_options)) + traced_options
        buffer = tf_session.TF_NewBufferFromString(options)
        try:
            handle = tf_session.TF_SessionMakeCallable(session._session, buffer)
        finally:
            tf_session.TF_DeleteBuffer(buffer)
        stored_handle = self.handles.setdefault(level, handle)
        if stored_handle is not handle:  # another thread was faster
            tf_session.TF_SessionReleaseCallable(session._session, handle)
        return stored_handle, _SETUP


class _CallProxy(object):
    """The ``self`` of ``_Callable.__call__`` in a traced run: session and variant's handle."""

    __slots__ = ("_handle", "_session")

    def __init__(self, session: Any, handle: Any) -> None:
        self._session = session
        self._handle = handle


class _BytesSink(object):
    """Stands for the caller's RunMetadata and keeps its bytes."""

    __slots__ = ("raw",)

    def __init__(self) -> None:
        self.raw: bytes | None = None

    def ParseFromString(self, raw: bytes) -> None:  # noqa: N802 - the name of protobuf
        """Keep ``raw``."""
        self.raw = raw


def _init(original: Original, signatures: RunSignatures) -> Original:
    def __init__(self: Any, session: Any, callable_options: Any) -> None:  # noqa: N807 - it replaces this method
        try:
            original(self, session, callable_options)
        except BaseException as error:
            strip_our_frames(error, original)
            raise
        _remember(self, session, callable_options, signatures)

    return mimic(__init__, original, "TF_SessionMakeCallable")


@guarded
def _remember(tf_callable: Any, session: Any, callable_options: Any, signatures: RunSignatures) -> _TracedVariants:
    """Make the variants of a callable with these options, store them in it, and return them."""
    run_key, tracker = signatures.of_names(session.graph, list(callable_options.fetch), list(callable_options.target))
    key = with_feeds(run_key, len(callable_options.feed))
    variants = _TracedVariants(tracker, key, callable_options.SerializeToString())
    return _store(tf_callable, variants)


def _store(tf_callable: Any, variants: _TracedVariants) -> _TracedVariants:
    """Store ``variants`` unless another thread was faster; return the stored ones."""
    if core.state() is None:  # disarmed
        return variants
    _callables.set(tf_callable)
    stored: _TracedVariants = vars(tf_callable).setdefault(_VARIANTS, variants)
    if not stored.requested_level:
        vars(tf_callable)[_ORDINALS] = stored.tracker.untimed
    return stored


def _find(
    tf_callable: Any, caller: FrameType, signatures: RunSignatures, unknown_variants: _TracedVariants
) -> _TracedVariants:
    """Return the variants of a callable that was made before the patch; ``caller`` calls it."""
    options = options_of(tf_callable, caller)
    variants = None if options is None else _remember(tf_callable, tf_callable._session, options, signatures)
    return variants or _store(tf_callable, unknown_variants)


def _call(original: Original, signatures: RunSignatures, tf_session: Any) -> Original:
    """Return the function that runs a call of a callable."""
    slow_path, unknown_variants = (
        _slow_path(original, tf_session),
        _TracedVariants(signatures.unknown_signature.tracker, 0, b"", is_traceable=False),
    )

    def call(tf_callable: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        variants = vars(tf_callable).get(_VARIANTS) or _find(
            tf_callable, sys._getframe(2), signatures, unknown_variants
        )
        tracker = variants.tracker
        if not variants.requested_level:
            for ordinal in tracker.untimed:
                try:
                    return original(tf_callable, *args, **kwargs)
                except BaseException:
                    tracker.put_failed(ordinal, variants.key)
                    raise
        ordinal = tracker.next()
        key = variants.key
        if (
            ordinal < tracker.trigger
            and tracker.words[POLICY] == tracker.generation
            and key in tracker.known_keys
            and not variants.requested_level
        ):
            start = mono()
            try:
                result = original(tf_callable, *args, **kwargs)
            except BaseException:
                tracker.put(tracker.kind, start, mono() - start, ordinal, key, _FAILED)
                raise
            tracker.put_timed(start, mono() - start, ordinal, key)
            return result
        return slow_path(tf_callable, ordinal, variants, args, kwargs)

    return call


def _call_wrapper(call: Original, original: Original) -> Original:
    """Return the replacement of ``_Callable.__call__`` where C code does not count."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it replaces this method
        try:
            return call(self, args, kwargs)
        except BaseException as error:
            strip_our_frames(error, original)
            raise

    return __call__


def _report_failure(tf_callable: Any) -> None:
    """Record the failure of a call that was only counted."""
    variants = vars(tf_callable).get(_VARIANTS)
    if variants is not None:
        variants.tracker.put_last_failed(variants.key)


def _slow_path(original: Original, tf_session: Any) -> Original:
    """Return the slow path of a call: it may be traced."""

    def slow_path(
        tf_callable: Any, ordinal: int, variants: _TracedVariants, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        metadata = kwargs.get("run_metadata") or None
        traced_run, receiver = _begin(tf_session, tf_callable, ordinal, variants, metadata) or (None, None)
        if traced_run is None:
            return call_untraced(tf_callable, variants.tracker, ordinal, variants.key, args, kwargs)
        sink, flags = _BytesSink(), _FAILED
        traced_run.mark_start()
        try:
            result = original(receiver, *args, run_metadata=sink)
            flags = 0
            return result
        finally:
            traced_run.mark_end(flags)
            _finish(traced_run, tf_callable._session, sink.raw, metadata)

    def call_untraced(
        tf_callable: Any, tracker: Tracker, ordinal: int, key: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        flags, start = _FAILED, mono()
        try:
            result = original(tf_callable, *args, **kwargs)
            flags = 0
            return result
        finally:
            duration = mono() - start
            tracker.put(tracker.kind, start, duration, ordinal, key, flags)
            if not flags:
                tracker.note_untraced(key, duration)

    return slow_path


@guarded
def _begin(
    tf_session: Any, tf_callable: Any, ordinal: int, variants: _TracedVariants, metadata: Any
) -> tuple[TracedRun, Any] | None:
    """Return (traced run, ``self`` for the original), None when the call is not traced."""
    work_start, tracker, key = mono(), variants.tracker, variants.key
    level = tracker.level(ordinal, key)
    if variants.requested_level:
        return TracedRun(tracker, ordinal, key, variants.requested_level, True, work_start), tf_callable
    if level is None:
        return None
    if not variants.is_traceable:
        _report(variants)
        return None
    session = tf_callable._session
    if metadata is not None and shows_statistics(session, variants.run_options):
        return None
    level, hold = chosen_level(level, tf_session)
    traced_run = TracedRun(tracker, ordinal, key, level, False, work_start, hold)
    try:
        handle, flag = variants.handle(session, level, tf_session)
    except BaseException:
        traced_run.mark_end()
        raise
    traced_run.flags |= flag
    return traced_run, _CallProxy(session, handle)


@guarded
def _finish(traced_run: TracedRun, session: Any, raw: bytes | None, metadata: Any) -> None:
    """Give the job the metadata that it expects; put the whole metadata into the channel."""
    try:
        if raw is not None and metadata is not None:
            metadata.ParseFromString(raw if traced_run.requested_by_job else pb_wire.without_field(raw, STEP_STATS))
    finally:
        traced_run.put(session, raw)


def _report(variants: _TracedVariants) -> None:
    """Report once that steps of unknown callables are not traced."""
    channel = variants.tracker.channel
    if channel is not None and not variants.is_reported:
        variants.is_reported = channel.report("unknown-callable", _UNTRACEABLE)


def _del(original: Original, tf_session: Any) -> Original:
    forget = called_back(_forget)

    def __del__(self: Any) -> None:  # noqa: N807 - it replaces this method
        forget(self, tf_session)
        original(self)

    return mimic(__del__, original, "TF_SessionReleaseCallable")


def _forget_all(tf_session: Any) -> None:
    """Forget all callables."""
    for tf_callable in _callables.existing():
        _forget(tf_callable, tf_session)


@guarded
def _forget(tf_callable: Any, tf_session: Any) -> None:
    """Remove our attributes from a callable, and release its variants."""
    vars(tf_callable).pop(_ORDINALS, None)
    variants = vars(tf_callable).pop(_VARIANTS, None)
    if variants is None or not variants.handles:
        return
    session = tf_callable._session
    if session._session is None or session._closed:
        return
    for handle in variants.handles.values():
        tf_session.TF_SessionReleaseCallable(session._session, handle)
