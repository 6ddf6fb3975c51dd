"""Runs callbacks at the end of the interpreter, by one exit hook.

The hook is registered when it is first needed and never unregistered: that would compare it with
the job's hooks by the job's own ``__eq__``.
"""

from __future__ import annotations

import atexit

from .guard import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

_calls: list[Callable[[], object]] = []


def at_end(call: Callable[[], object]) -> None:
    """Call ``call`` at the end of the interpreter, guarded; idempotent."""
    if call not in _calls:
        _calls.append(call)
        if len(_calls) == 1:
            atexit.register(_run)


def _run() -> None:
    for call in _calls:
        guarded(call)()
