"""Callbacks at the end of the interpreter and in forked children.

Python cannot unregister a callback in forked children. ``atexit.unregister`` compares the callbacks
of the job with ours, which may run code of the job. So one function is registered for each event
when it is first needed, and stays registered; ``forget`` empties its list of calls. The function
has separate globals, so that it keeps nothing else of ours alive.
"""

import os

from .guard import called_back, contain_in_callback, guarded, uninterrupted_start

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from typing import Any, Callable

    Call = Callable[[], object]

_end_calls: "list[Call]" = []
_child_calls: "list[Call]" = []
_added_calls: "list[tuple[str, Call]]" = []  # event and call
_registered_events: "set[str]" = set()
_child_handlers: "list[Call]" = []  # handler of an exception between two calls in a child


def at_end(call: "Call") -> None:
    """Call ``call`` at the end of the interpreter, guarded; idempotent."""
    if ("end", call) in _added_calls:  # checked first, since some steps call this function
        return
    import atexit

    _add(call, guarded(call), _end_calls, "end", atexit.register, [])


def in_child(call: "Call") -> None:
    """Call ``call`` in forked children, guarded; idempotent."""
    _child_handlers[:] = [contain_in_callback]
    _add(call, called_back(call), _child_calls, "child", _register_in_child, _child_handlers)


def forget() -> None:
    """Drop all callbacks."""
    _added_calls.clear()
    _end_calls.clear()
    _child_calls.clear()
    _child_handlers.clear()


def _register_in_child(function: "Any") -> None:
    os.register_at_fork(after_in_child=function)


def _add(
    call: "Call",
    guarded_call: "Call",
    calls: "list[Call]",
    event: str,
    register: "Callable[[Any], object]",
    handlers: "list[Call]",
) -> None:
    if (event, call) in _added_calls:
        return
    _added_calls.append((event, call))
    calls.append(guarded_call)
    if event not in _registered_events:
        _registered_events.add(event)
        function_type: "Any" = type(_run)
        register(function_type(_run.__code__, {"calls": calls, "handlers": handlers}))


# The functions with this code have no globals except `calls` and `handlers`. So the code uses no
# name of the builtins, such as BaseException. Its first line must be that of the `try`.
def _run() -> None:
    try:
        for call in calls[:]:  # type: ignore[name-defined]  # noqa: F821
            call()
    except:  # noqa: E722
        if not handlers:  # type: ignore[name-defined]  # noqa: F821
            raise
        handlers[0]()  # type: ignore[name-defined]  # noqa: F821


uninterrupted_start(_run)
