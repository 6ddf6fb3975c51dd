"""One session of TensorFlow's profiler; the thread of the step starts and exports it.

When a step exceeds the time or memory limit of a recording, a second thread drops the session. That
thread runs no Python code. It is a chain of built-in functions, made before it starts, and it
allocates nothing that is garbage-collected. So no finalizer, signal handler, trace function or hook
of the job's can run in it.
"""

from __future__ import annotations

import _queue
import _signal
import _thread
import ctypes
import operator
import os
import sys
import time
from itertools import chain, repeat, starmap

from .. import clock, descriptors, guard, libc, stderr_guard
from ..channel import memory
from . import allocations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

MODULE = "tensorflow.python.profiler.internal._pywrap_profiler"
_FOLDERS = ("/dev/shm", "/tmp")  # noqa: S108 - the folder is private and has a random name
_SUFFIX = ".xplane.pb"
_LEVEL = 3  # the default, 2, omits ops of less than about 8,000 cycles
BUSY_ERRORS = ("AlreadyExistsError", "UnavailableError")
BUSY_REASON = ("profiler-busy", "another profiler session is active: steps are not traced meanwhile")
_SIGNALS = frozenset(range(1, _signal.NSIG)) - {32, 33}  # all but those that the C library reserves
_DROP_WAIT = 10000000000  # ns to wait for a session that is being dropped
_POLL_S = 0.05  # seconds between checks of the process's size
_Usage = ctypes.c_long * 18  # struct rusage; made once: the job's garbage collection would have to free each class
_PEAK = 4  # index of the peak resident size (KiB) in a `_Usage`
_DROP_PAUSE = 0.002  # seconds between checks whether the session is dropped


class TooLargeError(Exception):
    """A session's data is larger than the record ring allows."""


class _Level(object):
    """The level as an integer without a truth value.

    TensorFlow 2.21 treats any option with a truth value as a boolean, and then ignores it. The
    methods are built-in ones, since a signal handler may interrupt a method in Python, and
    TensorFlow would drop the handler's exception.
    """

    __int__ = __index__ = _LEVEL.__index__


_OPTIONS = {"host_tracer_level": _Level()}


class StepSession(object):
    """A session that records from ``open`` to ``export`` or ``drop``.

    ``open`` limits its duration and the size of the process. ``start_ns`` and ``end_ns`` are on the
    monotonic clock, ``start_real_ns`` is on the real one. ``is_unwanted``: ``drop`` was called,
    perhaps during ``open``.
    """

    __slots__ = (
        "_folder",
        "_gone_token",
        "_log",
        "_sessions",
        "_stop_token",
        "_watch_lock",
        "end_ns",
        "is_unwanted",
        "start_ns",
        "start_real_ns",
    )

    def __init__(self) -> None:
        self.start_ns = self.start_real_ns = self.end_ns = 0
        self._folder = ""
        self._log: stderr_guard.FilteredStderr | None = None
        self._sessions: list[Any] = []
        #: Has an entry while the session may be stopped; the thread that takes the entry stops it.
        self._stop_token: dict[int, bool] = {}
        self.is_unwanted = False
        #: held while the second thread watches; its release ends that thread
        self._watch_lock = _thread.allocate_lock()
        self._watch_lock.acquire()
        self._gone_token: Any = _queue.SimpleQueue()  # has an entry once the session is gone

    def open(self, seconds: float, kib: int) -> tuple[str, str] | None:
        """Start recording; return (slug, text) of an obstacle, else None.

        The session is dropped after ``seconds``, or when the process is larger than ``kib``.
        """
        session_class = sys.modules[MODULE].ProfilerSession
        self._folder = _folder()
        try:
            self._log = stderr_guard.FilteredStderr()
            with self._log:
                self._sessions.append(session_class())  # the only reference, so that `free` ends the session
                original_start(session_class)(self._sessions[0], self._folder, _OPTIONS)
        except Exception as error:
            self.free()
            if guard.raised_by_job(error):
                raise
            return _reason(error)
        self._stop_token[0] = False
        try:
            self._watch(seconds, kib)
        except RuntimeError as error:
            self.drop()
            if guard.raised_by_job(error):
                raise
            return ("profiler-failed", str(error))
        self.start_ns, self.start_real_ns = clock.mono(), clock.real()
        allocations.enable()
        if self.is_unwanted:  # another thread called `drop` before the session could be dropped
            self.drop()
            return BUSY_REASON
        return None

    @property
    def is_stopped(self) -> bool:
        """Whether an open session is stopped or about to be."""
        return not self._stop_token

    def export(self, size_max: int) -> bytes | None:
        """Stop recording and return the XSpace; None when the session is gone.

        TooLargeError above ``size_max`` bytes.
        """
        try:
            if not self._take_stop_token():
                return None
            with descriptors.StandardFdsReserved():
                try:
                    os.mkdir(self._folder, 0o700)
                    with self._open_log:
                        self._sessions[0].export_to_tb()
                    self.end_ns = clock.mono()
                    return _content(self._folder, size_max)
                finally:
                    _remove(self._folder)
        finally:
            self.free()

    def drop(self) -> None:
        """Stop recording and discard the data.

        If another thread is opening the session, that thread drops it: only one thread at a time
        may redirect TensorFlow's log lines.
        """
        self.is_unwanted = True
        taken: bool | None = None
        try:
            taken = self._take_stop_token()
        finally:
            if taken is not False or not self._gone_token.empty():  # else another thread still opens or exports it
                self.free()

    def free(self) -> None:
        """Release the session, stopped or not; idempotent."""
        log = self._log
        self._end_watch()
        try:
            if log is not None:
                with log:
                    self._sessions.clear()
        finally:
            if log is not None:
                log.close()
            allocations.disable()
            self._gone_token.put(None)

    def leak(self) -> None:
        """Leak the session in a forked child: its end would log, and stop the parent's devices."""
        if self._log is not None:
            self._log.close()
        for session in self._sessions:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))
        self._stop_token.clear()

    @property
    def _open_log(self) -> stderr_guard.FilteredStderr:
        assert self._log is not None
        return self._log

    def _watch(self, seconds: float, kib: int) -> None:
        """Drop the session after ``seconds`` or above ``kib``, unless it is stopped before."""
        log = self._open_log
        pause = min(_POLL_S, seconds)
        polls = max(1, round(seconds / pause))
        usage = _Usage()
        ended_flags = starmap(self._watch_lock.acquire, repeat((True, pause), polls))
        results = starmap(libc.plain.getrusage, repeat((0, usage)))  # always 0
        seals = starmap(libc.plain.fcntl, [(log.fd, memory.GET_SEALS)])
        sizes = map(operator.or_, results, starmap(operator.getitem, repeat((usage, _PEAK))))
        calls = chain(
            # Waits until the recording has ended or must end; every result so far is false, which
            # continues the chain.
            map(operator.is_, map(any, [map(operator.or_, ended_flags, map(operator.lt, repeat(kib), sizes))]), [None]),
            starmap(self._stop_token.pop, [(0, True)]),  # true if another thread ends it, which ends the chain
            # Sets `log.fileno` to the log, or to -1 (not writable) if the job has closed the log.
            map(setattr, [log.fileno], ["value"], map({log.seals: log.fd}.get, seals, [-1])),
            starmap(self._sessions.clear, [()]),
            starmap(setattr, [(log.fileno, "value", log.job_fd)]),
            starmap(self._gone_token.put, [(None,)]),
        )
        # The new thread inherits a mask that blocks all signals. So the job's threads get those for
        # the process.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        try:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _SIGNALS)  # a signal handler of the job's may raise in this call
            _thread.start_new_thread(any, (calls,))
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

    def _take_stop_token(self) -> bool:
        """Return whether the caller is to stop the session.

        If another thread stops it, wait until it has.
        """
        taken = self._end_watch()
        deadline = clock.mono() + (0 if taken else _DROP_WAIT)
        while self._gone_token.empty() and clock.mono() < deadline:
            time.sleep(_DROP_PAUSE)
        return taken

    def _end_watch(self) -> bool:
        """Keep the second thread from stopping the session; return False if that is too late."""
        if self._stop_token.pop(0, True):
            return False
        self._watch_lock.release()
        return True


def original_start(cls: type) -> Callable[..., object]:
    """Return the unpatched method that starts a session."""
    start: Callable[..., object] = cls.__dict__["start"]
    return getattr(start, "__wrapped__", start)


def _reason(error: Exception) -> tuple[str, str]:
    """Return (slug, text) of the error that kept a session from starting."""
    if type(error).__name__ in BUSY_ERRORS:
        return BUSY_REASON
    if isinstance(error, stderr_guard.RedirectError):
        return ("profiler-noisy", "TensorFlow's log lines cannot be kept off standard error: %s" % error)
    return ("profiler-failed", "%s: %s" % (type(error).__name__, error))


def _folder() -> str:
    """Return a name for a private folder, in memory if possible."""
    name = "tfprof-%d-%s" % (clock.getpid(), os.urandom(8).hex())
    return os.path.join(next((folder for folder in _FOLDERS if os.access(folder, os.W_OK)), "/tmp"), name)  # noqa: S108


def _content(folder: str, size_max: int) -> bytes:
    """Return the one XSpace below the folder; TooLargeError above ``size_max`` bytes."""
    for path, is_folder in _tree(folder):
        if not is_folder and path.endswith(_SUFFIX):
            size = os.stat(path).st_size
            if size > size_max:
                raise TooLargeError(size)
            with open(path, "rb") as file:
                return file.read()
    raise OSError("the profiler session wrote nothing")


def _remove(folder: str) -> None:
    try:
        entries = _tree(folder)
    except FileNotFoundError as error:  # it was not created
        if guard.raised_by_job(error):
            raise
        return
    for path, is_folder in reversed(entries):
        (os.rmdir if is_folder else os.unlink)(path)


def _tree(folder: str) -> list[tuple[str, bool]]:
    """Return (path, whether it is a folder) of ``folder`` and all below it, parents first.

    ``os.walk`` would drop errors of signal handlers.
    """
    entries = [(folder, True)]
    for path, is_folder in entries:
        if is_folder:
            entries.extend((entry.path, entry.is_dir(follow_symlinks=False)) for entry in list(os.scandir(path)))
    return entries
