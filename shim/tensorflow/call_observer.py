"""Calls a callback whenever a function of the job's is called, and another when it ends.

The function object stays the same. A Python function gets a call of ours in front of its code;
anything else is replaced by a function that calls it.
"""

from __future__ import annotations

import sys
import types

from .. import core
from ..guard import called_back, guarded
from ..prologue import with_call
from ..tracebacks import copy_metadata, strip_our_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

#: Whether a returning frame is already gone when its kept value is released.
FRAME_GONE_FIRST = sys.version_info >= (3, 11)
#: Before 3.11: instructions that release the kept value when a function returns. In 3.7 the last
#: one may also raise.
_RETURNS = ("RETURN_VALUE", "POP_TOP", "END_FINALLY")
_returns: set[int] = set()  # their numbers, looked up at the first use
FUNCTION = 3  # frames from an EndCallback to the function, with the callback and its guard between


class EndCallback(object):
    """The result of a callback that observes the end of a call, too: it calls ``then(failed)``.

    ``frames`` is the number of frames from its creation to the observed function.
    """

    __slots__ = ("_frame", "_then", "failed")

    def __init__(self, then: Callable[[bool], object], frames: int = FUNCTION) -> None:
        self._then = then
        self._frame = id(sys._getframe(frames)) if FRAME_GONE_FIRST else 0
        self.failed: bool | None = None  # None if unknown

    @called_back
    def __del__(self) -> None:
        self._then(_raises(self._frame) if self.failed is None else self.failed)


def _raises(number: int) -> bool:
    """Return whether a function ends by an exception; ``number`` is the id of its frame."""
    frame = sys._getframe(FUNCTION)
    if FRAME_GONE_FIRST:
        return id(frame) == number
    return frame.f_code.co_code[frame.f_lasti] not in returns()


def returns() -> set[int]:
    """Return the numbers of the instructions that release the kept value at a function's return."""
    if not _returns:
        import opcode

        _returns.update({opcode.opmap[name] for name in _RETURNS if name in opcode.opmap})
    return _returns


def observe(
    owner: Any,
    name: str,
    callback: Callable[..., object],
    count: int = 1,
    ends: bool = False,
    fast: Callable[..., object] | None = None,
) -> None:
    """Call ``callback`` with the first ``count`` arguments of each call of ``owner.name``.

    This lasts until ``disarm``. Errors of ``callback`` do not reach the job. Nothing happens if
    ``owner`` itself has no such function. ``ends``: the callback may return an ``EndCallback``.
    ``fast`` is called instead where the code can be changed. It contains its own errors, and may
    return any object with a ``__del__``.
    """
    guarded_callback, function = guarded(callback), _innermost(owner.__dict__.get(name))
    inserted = fast or guarded_callback
    if isinstance(function, types.FunctionType) and with_call(function.__code__, inserted, count, ends) is not None:
        core.replace(function, "__code__", lambda code: with_call(code, inserted, count, ends))
    else:
        core.replace(owner, name, lambda original: _calling(original, guarded_callback, count))


def _innermost(function: Any) -> Any:
    """Return the function that ``function`` wraps, as long as all are Python functions."""
    while isinstance(function, types.FunctionType) and isinstance(
        vars(function).get("__wrapped__"), types.FunctionType
    ):
        function = vars(function)["__wrapped__"]
    return function


def _calling(original: Any, guarded_callback: Callable[..., object], count: int) -> Callable[..., Any]:
    """Return a function that calls the callback, then ``original``."""

    def call(*arguments: Any, **named: Any) -> Any:
        kept: Any = guarded_callback(*arguments[:count])
        try:
            result = original(*arguments, **named)
        except BaseException as error:
            if kept is not None:
                kept.failed = True
                kept = None
            strip_our_frames(error, original)
            raise
        if kept is not None:
            kept.failed = False
        return result

    copy_metadata(call, original)
    if isinstance(original, types.FunctionType):
        import inspect

        vars(call)["__signature__"] = inspect.signature(original)
    return call
