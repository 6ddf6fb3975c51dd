"""Keeps SIGXFSZ from the job: beyond the limit of file sizes, a write of ours fails with EFBIG.

The signal goes to the writing thread, and ends a job that has restored its default action.
"""

from __future__ import annotations

import _signal
from typing import Callable, TypeVar

R = TypeVar("R")


def without_signal(function: Callable[[], R]) -> R:
    """Call ``function`` and return its result; its writes cause no signal."""
    is_blocked = _signal.SIGXFSZ in _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
    to_unblock = () if is_blocked else (_signal.SIGXFSZ,)
    was_pending = _is_pending()
    try:
        try:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGXFSZ,))
            return function()
        finally:
            # Handlers of the job that wait run when this function begins, not before unblocking.
            if _is_pending() and not was_pending:
                _signal.sigtimedwait((_signal.SIGXFSZ,), 0)
    finally:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, to_unblock)  # a single call, which no handler can precede


def _is_pending() -> bool:
    return _signal.SIGXFSZ in _signal.sigpending()
