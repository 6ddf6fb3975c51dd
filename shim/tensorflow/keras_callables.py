"""Callables that a graph function of Keras made before the shim was attached.

TensorFlow keeps no record of what a callable runs, but Keras's function can tell.
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
def options_of(made: Any, caller: FrameType) -> Any:
    """Return the CallableOptions of ``made``, which a method of its graph function calls.

    ``caller`` is the frame of that method. Returns None if the caller is something else.
    """
    owner: Any = caller.f_locals.get("self")
    known = getattr(owner, "__dict__", {})
    if known.get("_callable_fn") is not made or not hasattr(owner, "_make_callable"):
        return None
    pairs = list(zip(known["_feed_symbols"], known["_symbol_vals"]))
    if any(to.dtype != value.dtype for to, value in pairs):
        return None  # Keras would add a cast to the job's graph
    # Keras's own code makes the options. It works on a copy, so that the job's function is
    # unchanged.
    twin = object.__new__(type(owner))
    vars(twin).update(known)
    sink = _OptionsSink()
    twin._make_callable(known["_feed_arrays"], known["_feed_symbols"], known["_symbol_vals"], sink)
    return sink.options
