"""Calls a note of ours whenever a function of the job's is called; the function object stays the same.

A Python function gets a call of ours in front of its code. What has no such code is replaced by a function that calls it.
"""

from __future__ import annotations

import types

from . import core
from .frame import leave, look_like
from .guard import guarded
from .prologue import with_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def tell(owner: Any, name: str, note: Callable[..., object], count: int = 1) -> None:
    """Have ``note`` called with the first ``count`` arguments whenever ``owner.name`` is, until ``disarm``.

    Whatever ``note`` does wrong is kept from the job. Nothing happens where ``owner`` itself has no such function.
    """
    told, function = guarded(note), _innermost(owner.__dict__.get(name))
    if isinstance(function, types.FunctionType) and with_call(function.__code__, told, count) is not None:
        core.replace(function, "__code__", lambda code: with_call(code, told, count))
    else:
        core.replace(owner, name, lambda original: _calling(original, told, count))


def _innermost(function: Any) -> Any:
    """Return what ``function`` wraps, where it is Python all the way: decorators take any arguments."""
    while isinstance(function, types.FunctionType) and isinstance(
        vars(function).get("__wrapped__"), types.FunctionType
    ):
        function = vars(function)["__wrapped__"]
    return function


def _calling(original: Any, told: Callable[..., object], count: int) -> Callable[..., Any]:
    """Return a function that calls ``told``, then ``original``."""

    def call(*arguments: Any, **named: Any) -> Any:
        told(*arguments[:count])
        try:
            return original(*arguments, **named)
        except BaseException as error:
            leave(error, original)
            raise

    look_like(call, original)
    if isinstance(original, types.FunctionType):
        import inspect

        vars(call)["__signature__"] = inspect.signature(original)
    return call
