"""Callables that a graph function of Keras made before the shim was attached.

TensorFlow does not store what a callable runs, but Keras's function does.
"""

from __future__ import annotations

from ..guard import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


class _OptionsSink(object):
    """A stand-in for the session in which a graph function makes its callable.

    It keeps the options of the callable.
    """

    __slots__ = ("options",)

    def __init__(self) -> None:
        self.options: Any = None

    def _make_callable_from_options(self, options: Any) -> None:
        self.options = options


@guarded
def options_of(tf_callable: Any, caller: FrameType) -> Any:
    """Return the CallableOptions of ``tf_callable``, which a method of its graph function calls.

    ``caller`` is the frame of that method. Return None if the caller is something else,
    or if Keras would add a cast to the job's graph.
    """
    owner: Any = caller.f_locals.get("self")
    attributes = getattr(owner, "__dict__", {})
    if attributes.get("_callable_fn") is not tf_callable or not hasattr(owner, "_make_callable"):
        return None
    pairs = list(zip(attributes["_feed_symbols"], attributes["_symbol_vals"]))
    if any(symbol.dtype != value.dtype for symbol, value in pairs):
        return None  # Keras would add a cast
    # Keras's own code makes the options. It works on a copy, so that the job's function is
    # unchanged.
    owner_copy = object.__new__(type(owner))
    vars(owner_copy).update(attributes)
    sink = _OptionsSink()
    owner_copy._make_callable(attributes["_feed_arrays"], attributes["_feed_symbols"], attributes["_symbol_vals"], sink)
    return sink.options
