"""Calls a callback whenever a function of the job's is called, and another when it ends.

A Python function stays the same object if its code can be changed: a call of ours is inserted in
front of the code. Anything else is replaced by a function that calls it.
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

#: Instructions that release the result of a callback when the observed function returns. That
#: function keeps it on its stack (prologue.py). In 3.7, END_FINALLY may also raise.
_RETURN_OPNAMES = ("RETURN_VALUE", "POP_TOP", "END_FINALLY")
_return_opcodes: set[int] = set()  # the numbers of these instructions, looked up at the first use
_END_FRAMES = 3  # frames from `_has_failed` to the observed function


class EndCallback(object):
    """A callback returns this object to let ``on_end(failed)`` be called at the end of the call."""

    __slots__ = ("_on_end", "failed")

    def __init__(self, on_end: Callable[[bool], object]) -> None:
        self._on_end = on_end
        self.failed: bool | None = None  # None if unknown

    @called_back
    def __del__(self) -> None:
        self._on_end(_has_failed() if self.failed is None else self.failed)


def _has_failed() -> bool:
    """Return whether the observed function ends by an exception."""
    frame = sys._getframe(_END_FRAMES)
    return frame.f_code.co_code[frame.f_lasti] not in return_opcodes()


def return_opcodes() -> set[int]:
    """Return the numbers of the instructions in `_RETURN_OPNAMES`."""
    if not _return_opcodes:
        import opcode

        _return_opcodes.update({opcode.opmap[name] for name in _RETURN_OPNAMES if name in opcode.opmap})
    return _return_opcodes


def observe(
    owner: Any,
    name: str,
    callback: Callable[..., object],
    count: int = 1,
    observes_end: bool = False,
    fast_callback: Callable[..., object] | None = None,
    on_failure: Callable[..., object] | None = None,
) -> None:
    """Call ``callback`` with the first ``count`` arguments of each call of ``owner.name``.

    This lasts until ``disarm``. Errors of ``callback`` do not reach the job. Nothing happens if
    ``owner`` itself has no such function. ``observes_end``: the callback may return an
    ``EndCallback``. ``fast_callback`` is called instead where the code can be changed. It contains
    its own errors. ``on_failure`` is called there with the same arguments when the function fails.
    """
    guarded_callback, function = guarded(callback), _innermost(owner.__dict__.get(name))
    inserted_callback = fast_callback or guarded_callback
    code = None
    if isinstance(function, types.FunctionType):
        code = with_call(function.__code__, inserted_callback, count, observes_end, on_failure)
    if code is not None:
        core.replace(function, "__code__", lambda _: code)
    else:
        core.replace(owner, name, lambda original: _wrapper(original, guarded_callback, count))


def _innermost(function: Any) -> Any:
    """Follow ``__wrapped__`` from ``function`` on, and return the last Python function."""
    while isinstance(function, types.FunctionType) and isinstance(
        vars(function).get("__wrapped__"), types.FunctionType
    ):
        function = vars(function)["__wrapped__"]
    return function


def _wrapper(original: Any, guarded_callback: Callable[..., object], count: int) -> Callable[..., Any]:
    """Return a function that calls the callback, then ``original``."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        end_callback: Any = guarded_callback(*arguments[:count])
        try:
            result = original(*arguments, **keywords)
        except BaseException as error:
            if end_callback is not None:
                end_callback.failed = True
                end_callback = None
            strip_our_frames(error, original)
            raise
        if end_callback is not None:
            end_callback.failed = False
        return result

    copy_metadata(call, original)
    if isinstance(original, types.FunctionType):
        import inspect

        vars(call)["__signature__"] = inspect.signature(original)
    return call
