"""Runs the job as a transparent parent: forwards signals, stops and ends as the job does."""

import contextlib
import errno
import functools
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from ...formats.errors import TfprofError
from .. import python_command
from .forwarding import Forwarding, asks_for_end
from .signal_receiver import BLOCKABLE_SIGNALS, Signal, SignalReceiver

#: Signals that Python itself ignores; a job starts with their default action.
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
#: Limit of the core size at which Linux writes no core: no file is that small, and for a core that
#: goes to a pipe this value means "none".
_NO_CORE: Final = 1
#: Poll interval of a stop of the command before it is executed (seconds).
_STOP_POLL_S: Final = 0.1
#: si_code of a signal with a value: SI_QUEUE of <bits/siginfo-consts.h>.
_SI_QUEUE: Final = -1


class NotStartedError(TfprofError):
    """The command cannot be executed.

    `exit_code` is that of a shell: 127 for not found, 126 for not executable.
    """

    slug = "not-started"

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Outcome(NamedTuple):
    """The end of a job: exactly one of exit status and signal is set."""

    status: int | None
    signal: int | None

    @property
    def exit_code(self) -> int:
        """The exit code of a shell: the status, or 128 + signal."""
        return self.status if self.status is not None else 128 + (self.signal or 0)


class InheritedSignals(NamedTuple):
    """The signal mask that this process inherited, and whether it inherited an ignored SIGCHLD."""

    mask: set[signal.Signals]
    ignores_children: bool


def block_signals() -> InheritedSignals:
    """Block every signal from now on; return the settings that a job must get back."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKABLE_SIGNALS)
    ignores_children = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if ignores_children:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return InheritedSignals({signal.Signals(number) for number in mask}, ignores_children)


def start(
    command: Sequence[str],
    environ: Mapping[str, str],
    inherited_signals: InheritedSignals,
    announce_job: Callable[[], object],
) -> int:
    """Start ``command`` in this process group and return its pid.

    NotStartedError when that fails. ``announce_job`` is called in the new process before it
    executes the command.
    """
    pipe_fds: list[int] = []
    try:
        pipe_fds += os.pipe()
        pid = os.fork()
    except OSError as error:
        for fd in pipe_fds:
            os.close(fd)
        raise NotStartedError(f"fork: {os.strerror(error.errno or errno.EAGAIN)}", 126) from None
    reply_reader, reply_writer = pipe_fds
    if pid == 0:
        _become(command, environ, inherited_signals, announce_job, reply_writer)
    os.close(reply_writer)
    with os.fdopen(reply_reader, "rb") as pipe:
        _continue_until(reply_reader, pid)
        code = pipe.read()
    if code:
        os.waitpid(pid, 0)
        raise not_started_error(command[0], int(code))
    return pid


def _continue_until(fd: int, pid: int) -> None:
    """Return when ``fd`` is readable; continue process ``pid`` if it is stopped before.

    A stop of the process group stops both. This process knows of it only after it was continued.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while not poll.poll(1000 * _STOP_POLL_S):
        if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None:
            os.kill(pid, signal.SIGCONT)


def _become(
    command: Sequence[str],
    environ: Mapping[str, str],
    inherited_signals: InheritedSignals,
    announce_job: Callable[[], object],
    reply_writer: int,
) -> NoReturn:
    """Execute the job in this forked child."""
    code = errno.ENOEXEC
    try:
        announce_job()
        execute(command, environ, inherited_signals)
    except OSError as error:
        code = error.errno or code
    finally:
        os.write(reply_writer, b"%d" % code)
        os._exit(127)


def execute(command: Sequence[str], environ: Mapping[str, str], inherited_signals: InheritedSignals) -> NoReturn:
    """Replace this process by ``command`` with the inherited signals; OSError when that fails."""
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if inherited_signals.ignores_children:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, inherited_signals.mask)
    failure: OSError | None = None
    for path in python_command.paths(command[0], environ):
        try:
            os.execve(path, list(command), dict(environ))
        except OSError as error:
            if error.errno == errno.ENOEXEC:
                # The file is a script whose first line names no interpreter: shells run such
                # scripts themselves.
                os.execve("/bin/sh", ["sh", path, *command[1:]], dict(environ))
            if failure is None or failure.errno in (errno.ENOENT, errno.ENOTDIR):
                failure = error
    raise failure or FileNotFoundError(errno.ENOENT, command[0])


def not_started_error(name: str, code: int) -> NotStartedError:
    """Return a shell's error for command ``name``, which failed to start with errno ``code``."""
    if code == errno.ENOENT:
        if "/" not in name:
            return NotStartedError(f"{name}: command not found", 127)
        reason = "cannot execute: required file not found" if os.path.exists(name) else os.strerror(code)
        return NotStartedError(f"{name}: {reason}", 127)
    if code == errno.EACCES and os.path.isdir(name):
        code = errno.EISDIR
    return NotStartedError(f"{name}: {os.strerror(code)}", 126)


@functools.cache
def _receiver() -> SignalReceiver:
    return SignalReceiver()


def wait(
    pid: int,
    watch: Callable[[], float],
    forwarding: Forwarding,
    stopping: Callable[[], contextlib.AbstractContextManager[object]],
    wake_fd: int = -1,
) -> Outcome:
    """Supervise the job to its end: forward signals, and stop this process when the job stops.

    ``watch`` returns the seconds to its next call. It is called at once when ``wake_fd`` becomes
    readable. ``stopping`` returns the context in which this process stops.
    """
    child, receiver = _Child(pid), _receiver()
    next_watch_s = time.monotonic()
    receiver.listen(wake_fd)
    try:
        while True:
            wake_s = min(next_watch_s, forwarding.due_at)
            received_signal = receiver.next(wake_s - time.monotonic())
            now = time.monotonic()
            if received_signal is None and now < wake_s:
                next_watch_s = now
            if received_signal is not None and received_signal.number == signal.SIGCHLD:
                outcome = child.poll()
                if outcome is not None:
                    return outcome
            if received_signal is not None and not (
                received_signal.number == signal.SIGCHLD and received_signal.code > 0
            ):
                forwarding.add(received_signal, now)
            for signal_to_forward in forwarding.take_ready(now):
                _forward(signal_to_forward, child)
            if child.stopped_by and not forwarding.may_forward(signal.SIGCONT):
                with stopping():
                    child.stop_together()
            if now >= next_watch_s:
                next_watch_s = watch() + time.monotonic()
    finally:
        receiver.forget(wake_fd)


class _Child:
    """The state of the job; ``stopped_by`` is the signal that stopped it, 0 while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.stopped_by = 0

    def poll(self) -> Outcome | None:
        """Read status changes of the job; return its outcome, None while it runs."""
        while True:
            changed_pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if not changed_pid:
                return None
            if os.WIFSTOPPED(status):
                self.stopped_by = os.WSTOPSIG(status)
            elif os.WIFCONTINUED(status):
                self.stopped_by = 0
            elif os.WIFSIGNALED(status):
                return Outcome(None, os.WTERMSIG(status))
            else:
                return Outcome(os.WEXITSTATUS(status), None)

    def stop_together(self) -> None:
        """Stop this process by the signal that stopped the job; return when it is continued.

        The stop of the whole group may have interrupted this process just before. A SIGCONT that
        has ended that stop is pending, and another stop would discard it.
        """
        if signal.SIGCONT in signal.sigpending():
            return
        number, self.stopped_by = self.stopped_by, 0
        _stop_by_signal(number)


def _forward(info: Signal, child: _Child) -> None:
    """Forward a signal to the job, with its value."""
    if info.number == signal.SIGCONT:
        child.stopped_by = 0
    with contextlib.suppress(PermissionError, ProcessLookupError):  # the job may run as another user
        if info.code != _SI_QUEUE or not _queue(info, child.pid):
            os.kill(child.pid, info.number)


def _queue(info: Signal, pid: int) -> bool:
    """Queue the signal with its value; return whether that succeeded."""
    try:
        import ctypes  # noqa: PLC0415 - few signals have a value
    except ImportError:
        return False
    return bool(ctypes.CDLL(None).sigqueue(pid, info.number, ctypes.c_void_p(info.value)) == 0)


def end_like(outcome: Outcome) -> int:
    """End this process by the signal that killed the job, if any; otherwise return the exit code.

    The kernel may ignore the signal, as it does for process 1 of a container. The exit code is then
    returned, too.
    """
    if outcome.signal is not None:
        import resource  # noqa: PLC0415 - imported late, so that the job starts earlier

        hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
        core_size = _NO_CORE if hard_limit == resource.RLIM_INFINITY else min(_NO_CORE, hard_limit)
        resource.setrlimit(resource.RLIMIT_CORE, (core_size, hard_limit))  # the job has written its core
        with contextlib.suppress(OSError, ValueError):  # SIGKILL, and signals that the C library reserves
            signal.signal(outcome.signal, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {outcome.signal})
        os.kill(os.getpid(), outcome.signal)
    return outcome.exit_code


def wait_for_interrupt(seconds: float) -> int:
    """Wait ``seconds``, or until a signal asks for the end; return that signal, else 0."""
    deadline, receiver = time.monotonic() + seconds, _receiver()
    while True:
        received_signal = receiver.next(deadline - time.monotonic())
        if received_signal is not None and asks_for_end(received_signal.number):
            return received_signal.number
        if received_signal is None and time.monotonic() >= deadline:
            return 0


def _stop_by_signal(number: int) -> None:
    """Stop this process by the signal ``number``, visibly for a shell; return when continued."""
    if number == signal.SIGSTOP:
        os.kill(os.getpid(), number)
        return
    previous_handler = signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    signal.signal(number, previous_handler)
