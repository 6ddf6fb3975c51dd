"""Callables of a session; a traced call runs a variant of the callable that has a trace level.

Keras trains through callables in graph mode.
"""

from __future__ import annotations

import sys
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any, Callable

from ...formats import layout, pb_wire
from ...formats.run_keys import with_feeds
from .. import core
from ..cpython.tracebacks import mimic, strip_our_frames
from ..guard import called_back, guarded
from ..pacing.tracker import Tracker
from ..steps import observer
from ..weak_table import WeakTable
from .measured_call import TRACE_LEVEL, TracedCall, batch_of, measure, with_level
from .runs import RunSignatures

Original = Callable[..., Any]

_OPTIONS = 4  # CallableOptions.run_options
_VARIANTS = "_tfprof_variants"  # the attribute of a callable that holds its variants
_UNTRACEABLE = "a callable was made before tfprof was attached: its steps are timed but not traced"

#: Callables that have attributes of ours.
_callables = WeakTable()


def patch(cls: Any, signatures: RunSignatures, tf_session: Any) -> None:
    """Measure and trace the callables of class ``cls``."""

    def init_called(tf_callable: Any, session: Any, options: Any) -> observer.EndCallback:
        return observer.EndCallback(lambda _failed: _remember(tf_callable, session, options, signatures))

    @called_back
    def deleted(tf_callable: Any) -> None:
        _forget(tf_callable, tf_session)

    core.at_disarm(lambda: [_forget(each, tf_session) for each in _callables.existing()])
    observer.observe(cls, "__init__", init_called, 3, observes_end=True)
    core.replace(cls, "__call__", lambda original: _call(original, signatures, tf_session))
    observer.observe(cls, "__del__", deleted)


class _TracedVariants(object):
    """The options (bytes), span key and tracker of one callable, and its variants by trace level.

    ``options`` is None if they are unknown: then the callable cannot be traced. ``run_options`` are
    the job's RunOptions in them (bytes).
    """

    def __init__(self, tracker: Tracker, key: int, options: bytes | None) -> None:
        self.options = options
        self.key = key
        self.tracker = tracker
        self.run_options = b"".join(pb_wire.field_contents(options or b"", _OPTIONS))
        self.requested_level = pb_wire.last_varint(self.run_options, TRACE_LEVEL)
        self.handles: dict[int, Any] = {}

    def handle(self, session: Any, level: int, tf_session: Any) -> tuple[Any, int]:
        """Return (handle of the variant at ``level``, span flag: FLAG_SETUP if it is new)."""
        handle = self.handles.get(level)
        if handle is not None:
            return handle, 0
        options = (self.options or b"") + pb_wire.bytes_field(_OPTIONS, with_level(b"", level))
        buffer = tf_session.TF_NewBufferFromString(options)
        try:
            handle = tf_session.TF_SessionMakeCallable(session._session, buffer)
        finally:
            tf_session.TF_DeleteBuffer(buffer)
        stored_handle = self.handles.setdefault(level, handle)
        if stored_handle is not handle:  # another thread was faster
            tf_session.TF_SessionReleaseCallable(session._session, handle)
        return stored_handle, layout.FLAG_SETUP


@guarded
def _remember(tf_callable: Any, session: Any, options: Any, signatures: RunSignatures) -> _TracedVariants | None:
    """Make the variants of a callable with these CallableOptions, store and return them."""
    if tf_callable._handle is None:  # TensorFlow refused the options
        return None
    run_key, tracker = signatures.of_names(session.graph, list(options.fetch), list(options.target))
    key = with_feeds(run_key, len(options.feed))
    return _store(tf_callable, _TracedVariants(tracker, key, options.SerializeToString()))


def _store(tf_callable: Any, variants: _TracedVariants) -> _TracedVariants:
    """Store ``variants`` unless another thread was faster; return the stored ones."""
    if core.state() is None:  # disarmed
        return variants
    _callables.set(tf_callable)
    stored: _TracedVariants = vars(tf_callable).setdefault(_VARIANTS, variants)
    return stored


def _find(
    tf_callable: Any, caller: FrameType, signatures: RunSignatures, unknown_variants: _TracedVariants
) -> _TracedVariants:
    """Return the variants of a callable that was made before the patch; ``caller`` calls it."""
    options = _options_of(tf_callable, caller)
    variants = None if options is None else _remember(tf_callable, tf_callable._session, options, signatures)
    return variants or _store(tf_callable, unknown_variants)


def _call(original: Original, signatures: RunSignatures, tf_session: Any) -> Original:
    unknown_variants = _TracedVariants(signatures.unknown_signature.tracker, 0, None)

    # Most calls are only counted.
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it replaces this method
        ordinal = 0
        try:
            variants = self.__dict__.get(_VARIANTS) or _find(self, sys._getframe(1), signatures, unknown_variants)
            if not variants.requested_level:
                ordinal = variants.tracker.take_untimed()
            if ordinal:
                return original(self, *args, **kwargs)
            begin = partial(_begin, variants, tf_session, kwargs.get("run_metadata") or None)
            call = partial(original, **kwargs) if kwargs else original
            return measure(variants.tracker, variants.key, bool(variants.requested_level), begin, call, (self, *args))
        except BaseException as error:
            if ordinal:
                variants.tracker.put_failed(ordinal, variants.key)
            strip_our_frames(error, original)
            raise

    return mimic(__call__, original, "TF_SessionRunCallable")


@guarded
def _begin(
    variants: _TracedVariants, tf_session: Any, metadata: Any, tracker: Tracker, ordinal: int, key: int, arguments: Any
) -> TracedCall | None:
    """Return the traced run, None when the call is not traced."""
    if variants.options is None:
        if tracker.level(ordinal, key, batch=batch_of(tracker)) is not None and tracker.channel is not None:
            tracker.channel.report("unknown-callable", _UNTRACEABLE, is_unique=True)
        return None
    prepare, session = partial(_prepare, variants, metadata, arguments), arguments[0]._session
    run = TracedCall(tracker, ordinal, key, session, tf_session)
    return run if run.prepare(prepare, variants.run_options, metadata) else None


def _prepare(variants: _TracedVariants, metadata: Any, arguments: tuple[Any, ...], run: TracedCall, level: int) -> None:
    """Call a variant of the callable if the callable itself has no trace level."""
    tf_callable, *others = arguments
    if not run.requested_by_job:
        handle, flag = variants.handle(run.session, level, run.tf_session)
        run.flags |= flag
        tf_callable = SimpleNamespace(_session=run.session, _handle=handle)
    parsed: list[bytes] = []
    own_metadata = SimpleNamespace(ParseFromString=parsed.append)
    run.arguments, run.keywords = (tf_callable, *others), {"run_metadata": own_metadata}
    run.raw = lambda: parsed[0] if parsed else None
    run.show = None if metadata is None else metadata.ParseFromString


@guarded
def _forget(tf_callable: Any, tf_session: Any) -> None:
    """Remove our attributes from a callable, and release its variants."""
    variants = vars(tf_callable).pop(_VARIANTS, None)
    session = None if variants is None else tf_callable._session
    if session is not None and session._session is not None and not session._closed:
        for handle in variants.handles.values():
            tf_session.TF_SessionReleaseCallable(session._session, handle)


# -- callables that a graph function of Keras made before the shim was attached ------------------


@guarded
def _options_of(tf_callable: Any, caller: FrameType) -> Any:
    """Return the CallableOptions of ``tf_callable``, which a method of its graph function calls.

    TensorFlow does not store what a callable runs, but Keras's function does. Return None if
    ``caller``, the frame of that method, is something else, or if Keras would add a cast to the
    job's graph.
    """
    owner: Any = caller.f_locals.get("self")
    attributes = getattr(owner, "__dict__", {})
    if attributes.get("_callable_fn") is not tf_callable or not hasattr(owner, "_make_callable"):
        return None
    if any(
        symbol.dtype != value.dtype for symbol, value in zip(attributes["_feed_symbols"], attributes["_symbol_vals"])
    ):
        return None
    # Keras's own code makes the options, in what it takes for a session. It works on a copy, so
    # that the job's function is unchanged.
    owner_copy = object.__new__(type(owner))
    vars(owner_copy).update(attributes)
    all_options: list[Any] = []
    session = SimpleNamespace(_make_callable_from_options=all_options.append)
    arguments = (attributes[name] for name in ("_feed_arrays", "_feed_symbols", "_symbol_vals"))
    owner_copy._make_callable(*arguments, session)
    return next(iter(all_options), None)
