"""Locks the process's TF profiler session.

TensorFlow allows one session per process, so the lock is taken only if the session is provably
free.
"""

from __future__ import annotations

import _thread
import sys

from .. import clock, guard
from .profiler import BUSY, MODULE, start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_lock = _thread.allocate_lock()
_pid = clock.getpid()


def take(tf_session: Any) -> bool:
    """Lock the profiler session if it is free; return whether it is now locked.

    The caller then calls ``release``.
    """
    global _lock, _pid
    if _pid != clock.getpid():
        _lock, _pid = _thread.allocate_lock(), clock.getpid()
    if not _lock.acquire(False):
        return False
    if _free(tf_session):
        return True
    _lock.release()
    return False


def drop_window() -> None:
    """Drop our window before a run that the job itself traces with the profiler session."""
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
