"""Callbacks at the end of the interpreter and in forked children.

Python cannot unregister a callback in forked children. ``atexit.unregister`` compares the callbacks
of the job with ours, which may run code of the job. So one function is registered for each event
when it is first needed, and stays registered; ``forget`` removes our calls from its list. The
module `posix` keeps the functions' globals, so that the next attach uses the same functions
(agent/attach/scripts.py). These keep nothing else of ours alive.
"""

import posix

from .cpython.codes import uninterrupted_start
from .guard import called_back, contain_in_callback, guarded

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from typing import Any, Callable

    Call = Callable[[], object]

#: The globals of the registered functions, by event: calls, handlers, and the function itself.
_kept: "dict[str, dict[str, Any]]" = vars(posix).setdefault("_tfprof_calls", {})
_added_calls: "dict[tuple[str, Call], Call]" = {}  # by event and unguarded call


def at_end(call: "Call") -> None:
    """Call ``call`` at the end of the interpreter, guarded; idempotent."""
    if ("end", call) in _added_calls:  # checked first, since some steps call this function
        return
    import atexit

    _add("end", call, guarded(call), atexit.register)


def in_child(call: "Call") -> None:
    """Call ``call`` in forked children, guarded; idempotent."""
    if ("child", call) in _added_calls:
        return
    _add("child", call, called_back(call), lambda run: posix.register_at_fork(after_in_child=run), contain_in_callback)


def forget() -> None:
    """Drop all callbacks."""
    for namespace in _kept.values():
        namespace["calls"][:] = [call for call in namespace["calls"] if call not in _added_calls.values()]
        namespace["handlers"].clear()
    _added_calls.clear()


def _add(event: str, call: "Call", guarded_call: "Call", register: "Any", *handlers: "Call") -> None:
    """Add ``call``; the ``handlers`` handle an exception between two calls."""
    namespace = _kept.setdefault(event, {"calls": [], "handlers": []})
    if "run" not in namespace:
        function_type: "Any" = type(_run)
        run = function_type(_run.__code__, namespace)
        register(run)
        namespace["run"] = run
    namespace["run"].__code__ = _run.__code__
    namespace["handlers"][:] = handlers
    _added_calls[event, call] = guarded_call
    namespace["calls"].append(guarded_call)


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
