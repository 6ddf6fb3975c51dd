"""One profiler session of TensorFlow's own, held by a thread that lives as long as it; its XSpace comes as bytes."""

from __future__ import annotations

import _signal
import _thread
import ctypes
import os
import sys
import time

from . import allocations, clock
from .guard import stop, theirs
from .quiet import NoisyError, silence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

MODULE = "tensorflow.python.profiler.internal._pywrap_profiler"
_PLACES = ("/dev/shm", "/tmp")  # noqa: S108 - the folder is private, and made under a random name
_SUFFIX = ".xplane.pb"
_BUSY = ("AlreadyExistsError", "UnavailableError")
_SIGNALS = frozenset(range(1, _signal.NSIG)) - {32, 33}  # all but those that the C library keeps to itself
_STARTED = 5.0  # seconds after which a start is given up


class Session(object):
    """A session that records until ``close``; then ``deliver(session, data)`` is called in its thread.

    ``refused`` is (slug, text) when it could not begin. ``began`` and ``ended`` are monotonic ns, ``began_real`` real ns,
    ``spent`` the CPU time of the thread in ns.
    """

    def __init__(self, deliver: Callable[[Session, bytes], object]) -> None:
        self.refused: tuple[str, str] | None = None
        self.began = self.began_real = self.ended = self.spent = 0
        self._deliver = deliver
        self._ready, self._asked, self._done = (_thread.allocate_lock() for _ in range(3))
        for lock in (self._ready, self._asked, self._done):
            lock.acquire()
        self._closed = False

    def open(self) -> bool:
        """Start recording; False when that was refused."""
        # The thread inherits the mask: a handler of the job's must not run where its descriptors are missing.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _SIGNALS)
        try:
            _thread.start_new_thread(self._hold, ())
        except RuntimeError as error:
            if theirs(error):
                raise
            self.refused = ("profiler-failed", str(error))
            self._done.release()
        else:
            if not self._ready.acquire(True, _STARTED):
                self.refused = ("profiler-failed", "the profiler did not start in %d s" % _STARTED)
                self.close()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        return self.refused is None

    def close(self) -> None:
        """Stop recording, soon; twice is once."""
        if not self._closed:
            self._closed = True
            self._asked.release()

    def wait(self, seconds: float) -> bool:
        """Return whether all is delivered, waiting so long for it; 0: do not wait."""
        if self._done.acquire(seconds > 0, seconds if seconds > 0 else -1):
            self._done.release()
            return True
        return False

    # -- in the thread ---------------------------------------------------------------------------

    def _hold(self) -> None:
        try:
            self._record()
        except Exception as error:
            self.refused = self.refused or _reason(error)
            if self.refused[0] == "profiler-failed":
                stop(error)
        finally:
            self.spent = time.thread_time_ns()
            if self._ready.locked():
                self._ready.release()
            self._done.release()

    def _record(self) -> None:
        calm = silence()
        made = sys.modules[MODULE].ProfilerSession
        place = _place()
        with calm:
            session = made()
            start_of(made)(session, place, {})
        self.began, self.began_real = clock.mono(), clock.real()
        # Never destroyed by a forked child or the end of the interpreter: that would log, and stop the parent's.
        held = ctypes.py_object(session)
        ctypes.pythonapi.Py_IncRef(held)
        del held
        with allocations.Told():
            self._ready.release()
            self._asked.acquire()
        try:
            os.mkdir(place, 0o700)
            try:
                with calm:
                    session.export_to_tb()
                self.ended = clock.mono()
                data = _content(place)
            finally:
                _remove(place)
        finally:
            with calm:
                ctypes.pythonapi.Py_DecRef(ctypes.py_object(session))
                del session
        self._deliver(self, data)


def start_of(cls: type) -> Callable[..., object]:
    """Return the method that starts a session, without what we put around it."""
    start: Callable[..., object] = cls.__dict__["start"]
    return getattr(start, "__wrapped__", start)


def _reason(error: Exception) -> tuple[str, str]:
    """Return (slug, text) of what kept a session from starting."""
    if type(error).__name__ in _BUSY:
        return ("profiler-busy", "another profiler session is active: batches run untraced meanwhile")
    if isinstance(error, NoisyError):
        return ("profiler-noisy", "TensorFlow's log lines about a session cannot be kept away: %s" % error)
    return ("profiler-failed", "%s: %s" % (type(error).__name__, error))


def _place() -> str:
    """Return a name for a private folder, in memory where that can be."""
    name = "tfprof-%d-%s" % (clock.getpid(), os.urandom(8).hex())
    return os.path.join(next((place for place in _PLACES if os.access(place, os.W_OK)), "/tmp"), name)  # noqa: S108


def _content(place: str) -> bytes:
    """Return the bytes of the one XSpace under ``place``."""
    for folder, _, names in os.walk(place):
        for name in names:
            if name.endswith(_SUFFIX):
                with open(os.path.join(folder, name), "rb") as file:
                    return file.read()
    raise OSError("the profiler session wrote nothing")


def _remove(place: str) -> None:
    for folder, _, names in os.walk(place, topdown=False):
        for name in names:
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
