"""What is done at the end of the interpreter, by one exit hook.

It is registered when it is first needed and never unregistered: that would compare it with what the job registered, by
the job's own ``__eq__``.
"""

from __future__ import annotations

import atexit

from .guard import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

_calls: list[Callable[[], object]] = []


def at_end(call: Callable[[], object]) -> None:
    """Have ``call`` called at the end of the interpreter, behind the fence; twice is once."""
    if call not in _calls:
        _calls.append(call)
        if len(_calls) == 1:
            atexit.register(_run)


def _run() -> None:
    for call in _calls:
        guarded(call)()
