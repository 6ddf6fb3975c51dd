"""Replaces a method of TensorFlow's: its steps are measured.

Where the shim's C part is loaded, it counts a step that needs nothing else, and the method's own
code goes on. The method stays the same object, and no frame of ours is on the stack. All other
steps run in a function of ours, which calls a copy of the method.
"""

from __future__ import annotations

import sys
import types

from .. import core
from ..guard import called_back
from ..prologue import with_branch
from ..tracebacks import is_raised_below_ours, line_of_call, mimic, strip_our_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Original = Callable[..., Any]


class Counter(object):
    """Counts steps in C: ``needs_python`` counts a step and returns False, or returns True.

    ``needs_python`` and ``report`` get the first ``count`` arguments of the method. ``report`` is
    called if a counted step fails.
    """

    __slots__ = ("count", "needs_python", "report")

    def __init__(self, needs_python: Callable[..., bool], count: int, report: Callable[..., object]) -> None:
        self.needs_python = needs_python
        self.count = count
        self.report = report


def replace(
    owner: Any,
    name: str,
    marker: str,
    make: Callable[[Original], Original],
    wrap: Callable[[Original, Original], Original],
    counter: Counter | None,
) -> None:
    """Replace the method ``owner.name`` until ``disarm``.

    ``make(original)`` returns a function that runs a step. It gets the method's arguments in order,
    with ``*args`` as one tuple and ``**kwargs`` as one dict. Without a ``counter``, or if the
    method's code cannot be changed, ``wrap(make(original), original)`` replaces the method. In
    tracebacks, our function is on the line where the method calls ``marker``.
    """
    method = vars(owner).get(name)
    code = None
    if counter is not None and isinstance(method, types.FunctionType):
        original = _copy(method)
        code = with_branch(
            method.__code__,
            counter.needs_python,
            counter.count,
            make(original),
            called_back(_failure_handler(original, counter.report)),
            line_of_call(method.__code__, marker),
        )
    if code is None:
        core.replace(owner, name, lambda original: mimic(wrap(make(original), original), original, marker))
    else:
        core.replace(method, "__code__", lambda _: code)


def _copy(method: Any) -> Original:
    """Return a copy of a method, whose code stays as it is now."""
    copy = types.FunctionType(
        method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__
    )
    copy.__kwdefaults__ = method.__kwdefaults__
    return copy


def _failure_handler(original: Original, report: Callable[..., object]) -> Callable[..., None]:
    """Return the handler of exceptions that leave the method.

    It reports the failure of a counted step. After any other step, which has reported its own
    failure, it drops our entries from the traceback.
    """

    def on_failure(*arguments: Any) -> None:
        error = sys.exc_info()[1]
        if error is not None and is_raised_below_ours(error):
            strip_our_frames(error, original)
        else:
            report(*arguments)

    return on_failure
