"""Callbacks at the end of the interpreter and in forked children.

Python keeps such callbacks for good. A callback for forked children cannot be unregistered. To
unregister one for the end, atexit would compare it with those of the job, which may run code of the
job. So one function of each sort is registered when it is first needed, and ``forget`` empties its
list. The function has separate globals, so that it keeps nothing else of ours alive.
"""

import os

from .guard import called_back, contain_in_callback, guarded, uninterrupted_start

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from typing import Any, Callable

    Call = Callable[[], object]

_at_end: "list[Call]" = []
_in_child: "list[Call]" = []
_known: "list[tuple[str, Call]]" = []
_registered: "set[str]" = set()
_interrupted: "list[Call]" = []


def at_end(call: "Call") -> None:
    """Call ``call`` at the end of the interpreter, guarded; idempotent."""
    if ("end", call) in _known:  # some steps call this
        return
    import atexit

    _add(call, guarded(call), _at_end, "end", atexit.register, [])


def in_child(call: "Call") -> None:
    """Call ``call`` in forked children, guarded; idempotent."""
    _interrupted[:] = [contain_in_callback]
    _add(call, called_back(call), _in_child, "child", _register_in_child, _interrupted)


def forget() -> None:
    """Drop all callbacks."""
    _known.clear()
    _at_end.clear()
    _in_child.clear()
    _interrupted.clear()


def _register_in_child(shell: "Any") -> None:
    os.register_at_fork(after_in_child=shell)


def _add(
    call: "Call",
    guarded_call: "Call",
    to: "list[Call]",
    name: str,
    register: "Callable[[Any], object]",
    handlers: "list[Call]",
) -> None:
    if (name, call) in _known:
        return
    _known.append((name, call))
    to.append(guarded_call)
    if name not in _registered:
        _registered.add(name)
        function: "Any" = type(_run)
        register(function(_run.__code__, {"calls": to, "handlers": handlers}))


def _run() -> None:
    try:  # the globals of each function with this code are `calls` and `handlers`: builtins are not among them
        for call in calls[:]:  # type: ignore[name-defined]  # noqa: F821
            call()
    except:  # noqa: E722
        if not handlers:  # type: ignore[name-defined]  # noqa: F821
            raise
        handlers[0]()  # type: ignore[name-defined]  # noqa: F821


uninterrupted_start(_run)
