"""Locks the process's TF profiler session.

TensorFlow allows one session per process, so the lock is taken only if the session is provably
free. A session that the job starts itself comes first.
"""

from __future__ import annotations

import _thread
import sys
import weakref

from .. import clock, guard
from .profiler import BUSY, MODULE, start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WAIT_S = 1.0  # maximum wait of the job for a run of ours that uses the session
_lock = _thread.allocate_lock()
_pid = clock.getpid()


class Claim(object):
    """Exists while the job starts a profiler session of its own, or traces a run with it."""

    failed: bool | None = None  # unused; observers of calls set it


#: While there are any, we start no session.
claims: weakref.WeakSet[Claim] = weakref.WeakSet()


def claim(_session: object = None) -> Claim:
    """End our sessions, since the job needs its own; the caller keeps the result meanwhile."""
    made = Claim()
    claims.add(made)
    _drop_window()
    _renew()
    if _lock.acquire(True, _WAIT_S):
        _lock.release()
    return made


def take(tf_session: Any) -> bool:
    """Lock the profiler session if it is free; return whether it is now locked.

    The caller then calls ``release``.
    """
    _renew()
    if not _lock.acquire(False):
        return False
    if not claims and _free(tf_session):
        return True
    _lock.release()
    return False


def _renew() -> None:
    """Replace the lock in a forked child: a thread of the parent may hold it."""
    global _lock, _pid
    if _pid != clock.getpid():
        _lock, _pid = _thread.allocate_lock(), clock.getpid()


def _drop_window() -> None:
    window = sys.modules.get(__package__ + ".window")  # loaded only if windows are possible
    if window is not None:
        window.drop_current()


def release() -> None:
    """Release the lock."""
    _lock.release()


@guard.guarded
def _free(tf_session: Any) -> bool:
    """Return whether a session can be started, by starting one; None where that fails."""
    if hasattr(tf_session, "TFE_NewProfiler"):
        profiler = tf_session.TFE_NewProfiler()
        try:
            return bool(tf_session.TFE_ProfilerIsOk(profiler))
        finally:
            tf_session.TFE_DeleteProfiler(profiler)
    __import__(MODULE)
    session = sys.modules[MODULE].ProfilerSession()
    try:
        start_of(type(session))(
            session, "", {"host_tracer_level": 0, "python_tracer_level": 0, "device_tracer_level": 0}
        )
    except Exception as error:
        if type(error).__name__ not in BUSY or guard.theirs(error):
            raise
        return False
    session.stop()
    return True
