"""Records a step with TensorFlow's profiler; the thread of the step starts and exports a session.

The windows (steps/window.py) use this module. It also notices profiler sessions and servers of the
job.

When a step exceeds the time or memory limit of a recording, a second thread drops the session. That
thread runs no Python code. It is a chain of built-in functions, made before it starts, and it
allocates nothing that is garbage-collected. So no finalizer, signal handler, trace function or hook
of the job's can run in it.
"""

from __future__ import annotations

import _queue
import _signal
import ctypes
import operator
import sys
from _io import FileIO  # the job's tests may replace the function `open`, and pyfakefs does so in all modules
from _thread import allocate_lock, get_ident, start_new_thread
from itertools import chain, repeat, starmap
from types import ModuleType
from typing import Any, Callable
from weakref import ref

from ...formats import layout
from .. import clock, guard, libc
from ..channel import memory
from ..channel.ring import Channel
from ..file_size_signal import without_signal
from ..own_os import os
from ..steps import observer, window
from ..steps.thread_state import is_other_thread_in_call
from ..steps.window import BUSY_REASON, ExportError
from . import allocations, graph, models, stderr_guard

MODULE = "tensorflow.python.profiler.internal._pywrap_profiler"
_FOLDERS = ("/dev/shm", "/tmp")  # noqa: S108 - the folder is private and has a random name
_FREE_MIN = 1 << 16  # blocks, mostly of 4 KiB: a container may have little memory, which the job needs
_SUFFIX = ".xplane.pb"
_LEVEL = 3  # the default, 2, omits ops of less than about 8,000 cycles
#: A variable that TensorFlow's message names if it switches the profiler off; the error is one of
#: BUSY_ERRORS.
_DISABLING = "TF_DISABLE_PROFILING"
BUSY_ERRORS = ("AlreadyExistsError", "UnavailableError")
#: The original: debuggers (pydevd) replace it by Python code, which would run in the new thread.
_start_thread = getattr(sys.modules["_thread"], "_original_start_new_thread", start_new_thread)
_SIGNALS = frozenset(range(1, _signal.NSIG)) - {32, 33}  # all but those that the C library reserves
_DROP_WAIT = 10000000000  # ns to wait for a session that is being dropped
_POLL_S = 0.05  # seconds between checks of the process's size
_LOG_MAX = 1 << 16  # maximum bytes of TensorFlow's log lines about a session
_DROP_PAUSE = 0.002  # seconds between checks whether the session is dropped


class _Level(object):
    """The level as an integer without a truth value.

    TensorFlow 2.21 treats any option with a truth value as a boolean, and then ignores it. The
    methods are built-in ones, since a signal handler may interrupt a method in Python, and
    TensorFlow would drop the handler's exception.
    """

    __int__ = __index__ = _LEVEL.__index__


_OPTIONS = {"host_tracer_level": _Level()}
#: Attributes of a function: what they refer to has the concrete functions. The first two are those
#: of TensorFlow up to 2.10, the others those up to 2.14.
_INNER_FUNCTIONS = ("_stateful_fn", "_stateless_fn", "_variable_creation_fn", "_no_variable_creation_fn")

_is_server_started = False  # the job's profiler server may start a session at any time


def obstacle(level: int) -> tuple[str, str] | None:
    """Return (slug, text) of what keeps steps from being recorded, None if nothing does."""
    if level == layout.LEVEL_SOFTWARE:
        return ("profiler-off", "with --trace-level software, steps that need a profiler session are not traced")
    if _is_server_started:
        return ("profiler-server", "the job runs a profiler server, which a session of ours would disturb")
    module = sys.modules.get(MODULE)  # TensorFlow itself imports it
    if not hasattr(getattr(module, "ProfilerSession", None), "export_to_tb"):
        return ("profiler-missing", "this TensorFlow has no profiler session that writes an XSpace")
    return None


class Recording(object):
    """A session over one step of the calling thread, and the functions called in it.

    It records from ``open`` to ``export`` or ``drop``.

    ``open`` limits its duration and the size of the process. ``start_ns`` is on the monotonic
    clock, ``start_real_ns`` on the real one. ``is_unwanted``: ``drop`` was called, perhaps during
    ``open``.
    """

    RECORD_KIND, HEAD_SIZE = layout.XSPACE, layout.XSPACE_HEAD.size

    def __init__(self) -> None:
        self.start_ns = self.start_real_ns = 0
        self._thread_ident = get_ident()
        self._is_disturbed = is_other_thread_in_call()
        #: by id, the functions called so far, and their models
        self._functions: dict[int, tuple[ref[Any], list[ref[Any]]]] = {}
        self._folder = ""
        self._log: Any = None  # the FilteredStderr of an open session
        self._sessions: list[Any] = []
        #: Has an entry while the session may be stopped; the thread that takes the entry stops it.
        self._stop_token: dict[int, bool] = {}
        self.is_unwanted = False
        #: held while the second thread watches; its release ends that thread
        self._watch_lock = allocate_lock()
        self._watch_lock.acquire()
        self._gone_token: Any = _queue.SimpleQueue()  # has an entry once the session is gone

    def open(self, seconds: float, kib: int) -> tuple[str, str] | None:
        """Start recording; return (slug, text) of an obstacle, else None.

        The session is dropped after ``seconds``, or when the process is larger than ``kib``.
        """
        session_class = sys.modules[MODULE].ProfilerSession
        self._folder = _folder()
        try:
            memory.check_limit(_LOG_MAX)
            self._log = stderr_guard.FilteredStderr()
            with self._log:
                self._sessions.append(session_class())  # the only reference, so that `free` ends the session
                original_start(session_class)(self._sessions[0], self._folder, _OPTIONS)
            self._stop_token[0] = False
            self._watch(seconds, kib)
        except Exception as error:
            self.free()
            if guard.raised_by_job(error):
                raise
            return _reason(error)
        self.start_ns, self.start_real_ns = clock.mono(), clock.real()
        self._is_disturbed |= is_other_thread_in_call()  # other threads may have begun calls meanwhile
        allocations.enable()
        if self.is_unwanted:  # another thread called `drop` before the session could be dropped
            self.drop()
            return BUSY_REASON
        return None

    @property
    def is_stopped(self) -> bool:
        """Whether an open session is stopped or about to be."""
        return not self._stop_token

    @property
    def is_gone(self) -> bool:
        """Whether an opened session is gone, with its data."""
        return not self._gone_token.empty()

    def export(self, size_max: int) -> bytes | None:
        """Stop recording and return the XSpace; None when the session is gone.

        ExportError above ``size_max`` bytes, or if TensorFlow cannot write it.
        """
        try:
            if not self._take_stop_token():
                return None
            return without_signal(lambda: self._export(size_max))
        except Exception as error:
            if isinstance(error, ExportError) or guard.raised_by_job(error):
                raise
            raise ExportError(*_reason(error)) from None
        finally:
            self.free()

    def _export(self, size_max: int) -> bytes:
        memory.check_limit(_LOG_MAX)
        try:
            os.mkdir(self._folder, 0o700)
            with self._log:
                self._sessions[0].export_to_tb()
            return _content(self._folder, size_max)
        finally:
            _remove(self._folder)

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
                    without_signal(self._sessions.clear)
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

    def head(self, count: int) -> bytes:
        """Return the head of the record of a step that counts as ``count`` steps."""
        others = layout.XSPACE_OTHER_THREADS if self._is_disturbed else 0
        return layout.XSPACE_HEAD.pack(self.start_real_ns, count, self._thread_ident | others)

    def note_call(self, call: dict[str, Any]) -> None:
        """Note that a function was called; ``call`` has the call's ``self`` and ``args``."""
        function = call.get("self")
        if function is None:
            return
        entry = self._functions.get(clock.identity(function))
        if entry is None or entry[0]() is not function:
            model_refs = [ref(each) for each in call.get("args") or () if models.is_model(each)]
            self._functions[clock.identity(function)] = (ref(function), model_refs)

    @guard.guarded
    def send_graphs(self, channel: Channel) -> None:
        """Send the graphs of the functions that were called."""
        for reference, model_refs in list(self._functions.values()):
            function = reference()
            for concrete in concrete_functions(function):
                graph.ensure_sent(concrete.graph, channel, (function, model_refs))

    def _watch(self, seconds: float, kib: int) -> None:
        """Drop the session after ``seconds`` or above ``kib``, unless it is stopped before."""
        log = self._log
        pause = min(_POLL_S, seconds)
        polls = max(1, round(seconds / pause))
        usage = libc.Usage()
        ended_flags = starmap(self._watch_lock.acquire, repeat((True, pause), polls))
        results = starmap(libc.plain.getrusage, repeat((0, usage)))  # always 0
        seals = starmap(libc.plain.fcntl, [(log.fd, memory.GET_SEALS)])
        sizes = map(operator.or_, results, starmap(operator.getitem, repeat((usage, libc.PEAK))))
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
            _start_thread(any, (calls,))
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

    def _take_stop_token(self) -> bool:
        """Return whether the caller is to stop the session.

        If another thread stops it, wait until it has.
        """
        taken = self._end_watch()
        deadline = clock.mono() + (0 if taken else _DROP_WAIT)
        while self._gone_token.empty() and clock.mono() < deadline:
            clock.sleep(_DROP_PAUSE)
        return taken

    def _end_watch(self) -> bool:
        """Keep the second thread from stopping the session; return False if that is too late."""
        if self._stop_token.pop(0, True):
            return False
        self._watch_lock.release()
        return True


def concrete_functions(function: Any) -> list[Any]:
    """Return the existing concrete functions of ``function``, without tracing."""
    functions: list[Any] = [function] if hasattr(function, "structured_input_signature") else []
    for holder in (function, *(getattr(function, name, None) for name in _INNER_FUNCTIONS)):
        cache = getattr(holder, "_function_cache", None)
        values = getattr(cache, "values", None) or getattr(cache, "all_values", None)
        if values is not None:
            functions.extend(values())
    return functions


def patch(module: ModuleType) -> None:
    """Drop our window when the job starts a profiler session or server of ``module``."""
    observer.observe(getattr(module, "ProfilerSession", None), "start", window.claim, observes_end=True)
    observer.observe(module, "start_server", _server_starting)


def _server_starting(_port: int) -> None:
    global _is_server_started
    _is_server_started = True
    window.drop_current()


def original_start(cls: type) -> Callable[..., object]:
    """Return the unpatched method that starts a session."""
    start: Callable[..., object] = cls.__dict__["start"]
    return getattr(start, "__wrapped__", start)


def _reason(error: Exception) -> tuple[str, str]:
    """Return (slug, text) of the error that kept a session from starting."""
    if _DISABLING in str(error):
        return ("profiler-disabled", "the job's environment switches TensorFlow's profiler off (%s)" % _DISABLING)
    if type(error).__name__ in BUSY_ERRORS:
        return BUSY_REASON
    if isinstance(error, ExportError):
        return error.args[0], error.args[1]
    return ("profiler-failed", "%s: %s" % (type(error).__name__, error))


def _folder() -> str:
    """Return a name for a private folder, in memory if possible."""
    name = "tfprof-%d-%s" % (clock.getpid(), os.urandom(8).hex())
    usable = (each for each in _FOLDERS if os.access(each, os.W_OK) and os.statvfs(each).f_bavail >= _FREE_MIN)
    return os.path.join(next(usable, "/tmp"), name)  # noqa: S108


def _content(folder: str, size_max: int) -> bytes:
    """Return the one XSpace below the folder; ExportError above ``size_max`` bytes."""
    for path, is_folder in _tree(folder):
        if not is_folder and path.endswith(_SUFFIX):
            size = os.stat(path).st_size
            if size > size_max:
                text = "the record of a step takes %d bytes, and the ring has room for %d" % (size, size_max)
                raise ExportError("window-too-large", text)
            with FileIO(path) as file:
                return file.read()
    raise OSError("the profiler session wrote nothing")


def _remove(folder: str) -> None:
    for path, is_folder in reversed(guard.attempt(FileNotFoundError, _tree, folder) or ()):
        (os.rmdir if is_folder else os.unlink)(path)


def _tree(folder: str) -> list[tuple[str, bool]]:
    """Return (path, whether it is a folder) of ``folder`` and all below it, parents first.

    ``os.walk`` and ``os.path.isdir`` would drop errors of signal handlers.
    """
    entries = [(folder, True)]
    for path, is_folder in entries:
        if is_folder:
            entries.extend((entry.path, entry.is_dir(follow_symlinks=False)) for entry in list(os.scandir(path)))
    return entries
