"""Calls a callback whenever a function of the job's is called, and another when it ends.

A Python function stays the same object if its code can be changed: a call of ours is inserted in
front of the code. Anything else is replaced by a function that calls it.
"""

from __future__ import annotations

import functools
import itertools
import opcode
import sys
import types
from typing import Any, Callable

from .. import core
from ..cpython.prologue import with_call
from ..cpython.tracebacks import strip_our_frames
from ..guard import called_back, guarded

#: Instructions that release the result of a callback when the observed function returns. That
#: function keeps it on its stack (prologue.py). In 3.7, END_FINALLY may also raise.
_RETURN_OPCODES = set(map(opcode.opmap.get, ("RETURN_VALUE", "POP_TOP", "END_FINALLY")))
_END_FRAMES = 3  # frames from `_has_failed` to the observed function


class _Inserted(functools.partial):  # type: ignore[type-arg]  # not generic in Python 3.7
    """A callback in a constant of the job's code, which the job may pickle.

    The copy of the code calls `itertools.chain` instead, which does nothing.
    """

    def __reduce__(self) -> Any:
        return functools.partial, (itertools.chain,)


def _constant(guarded_callback: Callable[..., object]) -> functools.partial[Any]:
    """Return a constant that calls the callback until ``disarm``, and then `itertools.chain`.

    TensorFlow may keep the code with this constant for ever, as part of the stack trace of an op.
    """
    constant = functools.partial(itertools.chain)
    constant.__setstate__((_Inserted(guarded_callback), (), {}, None))  # type: ignore[attr-defined]
    core.at_disarm(lambda: constant.__setstate__((itertools.chain, (), {}, None)))  # type: ignore[attr-defined]
    return constant


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
    frame = sys._getframe(_END_FRAMES)
    return frame.f_code.co_code[frame.f_lasti] not in _RETURN_OPCODES


def observe(owner: Any, name: str, callback: Callable[..., object], count: int = 1, observes_end: bool = False) -> None:
    """Call ``callback`` with the first ``count`` arguments of each call of ``owner.name``.

    This lasts until ``disarm``. Errors of ``callback`` do not reach the job. Nothing happens if
    ``owner`` itself has no such function. ``observes_end``: the callback may return an
    ``EndCallback``.
    """
    original = getattr(owner, "__dict__", {}).get(name)
    if original is None:
        return
    guarded_callback, function, code = guarded(callback), _innermost(original), None
    if isinstance(function, types.FunctionType):
        code = with_call(function.__code__, _constant(guarded_callback), count, observes_end)
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
            if isinstance(end_callback, EndCallback):
                end_callback.failed = True
            end_callback = None
            strip_our_frames(error, original)
            raise
        if isinstance(end_callback, EndCallback):
            end_callback.failed = False
        end_callback = None  # an exception that the job keeps may refer to this frame
        return result

    functools.update_wrapper(call, original)
    if isinstance(original, types.FunctionType):
        import inspect

        vars(call)["__signature__"] = inspect.signature(original)
    return call
