"""Locks the process's profiler session.

TensorFlow allows one session per process, so the lock is taken only if the session is provably
free. A session that the job starts itself comes first.
"""

from __future__ import annotations

import sys
import time

from .. import clock, guard
from ..try_lock import Hold, TryLock
from ..weak_table import WeakTable
from .profiler import BUSY_ERRORS, MODULE, original_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WAIT_NS = 1000000000  # maximum wait of the job for a traced run that holds the session
_PAUSE_S = 0.002  # seconds between two checks whether the run has ended
_lock = TryLock()
_pid = clock.getpid()


class Claim(object):
    """Exists while the job starts a profiler session, or traces a run with one."""

    failed: bool | None = None  # set by `call_observer`, as in an `EndCallback`; not read


#: The claims in force. While there are any, we start no session.
claims = WeakTable()


def claim(_session: object = None) -> Claim:
    """Drop our session, since the job is about to use one, and return a claim.

    The claim lasts as long as the returned object.
    """
    _renew()
    new_claim = Claim()
    try:
        claims.set(new_claim)
        _drop_window()
        deadline = clock.mono() + _WAIT_NS
        while _lock.is_held_by_another_thread and clock.mono() < deadline:
            time.sleep(_PAUSE_S)
        return new_claim
    finally:
        del new_claim  # a traceback that the job keeps must not keep it


def reserve() -> Hold | None:
    """Hold the profiler session and return the hold; None while it is in use or claimed."""
    _renew()
    hold = _lock.take()
    # A claim that begins after this check waits until ``hold`` is released.
    return None if claims else hold


def take(tf_session: Any) -> Hold | None:
    """Hold the profiler session if it is provably free; return the hold, else None."""
    hold = reserve()
    try:
        return hold if hold is not None and _is_free(tf_session) else None
    finally:
        del hold  # a traceback that the job keeps must not hold it


def _renew() -> None:
    """Forget the holder and the claims of the parent in a forked child."""
    global _lock, _pid
    if _pid != clock.getpid():
        _lock, _pid = TryLock(), clock.getpid()
        claims.clear()


def _drop_window() -> None:
    window = sys.modules.get(__package__ + ".window")  # loaded only if windows are possible
    drop = getattr(window, "drop_current", None)  # another thread may be about to load the module
    if drop is not None:
        drop()


@guard.guarded
def _is_free(tf_session: Any) -> bool:
    """Start and end a session; return whether none was active, None after an unexpected error."""
    if hasattr(tf_session, "TFE_NewProfiler"):
        profiler = tf_session.TFE_NewProfiler()
        try:
            return bool(tf_session.TFE_ProfilerIsOk(profiler))
        finally:
            tf_session.TFE_DeleteProfiler(profiler)
    __import__(MODULE)
    session = sys.modules[MODULE].ProfilerSession()
    try:
        original_start(type(session))(
            session, "", {"host_tracer_level": 0, "python_tracer_level": 0, "device_tracer_level": 0}
        )
    except Exception as error:
        if type(error).__name__ not in BUSY_ERRORS or guard.raised_by_job(error):
            raise
        return False
    session.stop()
    return True
