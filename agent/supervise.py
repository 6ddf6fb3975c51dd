"""The job's parent that nobody notices: signals, stops and the way it ends pass through it unchanged."""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from tfprof.shim.errors import TfprofError

from .forwarding import Forwarding

#: Python ignores these in itself; a job starts with their default.
_PYTHONS_OWN: Final = (signal.SIGPIPE, signal.SIGXFSZ)
#: Of a signal that was sent with a value: SI_QUEUE of <bits/siginfo-consts.h>.
_SI_QUEUE: Final = -1
#: Never to be had.
_NOT_OURS: Final = frozenset([signal.SIGKILL, signal.SIGSTOP])


class NotStartedError(TfprofError):
    """The command cannot be executed; `exit_code` is what a shell would say: 127 not found, 126 not executable."""

    slug = "not-started"

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Outcome(NamedTuple):
    """How a job ended: exactly one of exit status and signal."""

    status: int | None
    signal: int | None

    @property
    def exit_code(self) -> int:
        """What a shell says of it: the status, or 128 and the signal."""
        return self.status if self.status is not None else 128 + (self.signal or 0)


class Inherited(NamedTuple):
    """The signal mask and dispositions that this process was started with, as far as Python leaves them to be seen."""

    mask: set[signal.Signals]
    ignores_children: bool


def take_signals() -> Inherited:
    """Hold back every signal from now on, to be waited for; return what a job is to be given back."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    ignores_children = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if ignores_children:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return Inherited({signal.Signals(number) for number in mask}, ignores_children)


_WAITED: Final = signal.valid_signals() - _NOT_OURS


def start(
    command: Sequence[str], environ: Mapping[str, str], inherited: Inherited, introduce: Callable[[], object]
) -> int:
    """Start ``command`` in this process group and terminal and return its pid; NotStartedError when it cannot be.

    ``introduce`` is called in the new process before it becomes the command.
    """
    hear, say = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(hear)
        os.close(say)
        raise NotStartedError(f"fork: {os.strerror(error.errno or errno.EAGAIN)}", 126) from None
    if pid == 0:
        _become(command, environ, inherited, introduce, say)
    os.close(say)
    with os.fdopen(hear, "rb") as pipe:
        code = pipe.read()
    if code:
        os.waitpid(pid, 0)
        raise not_started(command[0], int(code))
    return pid


def _become(
    command: Sequence[str],
    environ: Mapping[str, str],
    inherited: Inherited,
    introduce: Callable[[], object],
    say: int,
) -> NoReturn:
    """Turn this forked child into the job."""
    code = errno.ENOEXEC
    try:
        introduce()
        execute(command, environ, inherited)
    except OSError as error:
        code = error.errno or code
    finally:
        os.write(say, b"%d" % code)
        os._exit(127)


def execute(command: Sequence[str], environ: Mapping[str, str], inherited: Inherited) -> NoReturn:
    """Replace this process by ``command`` with the signals that were inherited; OSError when it cannot be."""
    for number in _PYTHONS_OWN:
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if inherited.ignores_children:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, inherited.mask)
    try:
        os.execvpe(command[0], list(command), dict(environ))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script without a first line that names its interpreter: every shell takes it as one of its own.
        os.execve("/bin/sh", ["sh", _located(command[0], environ), *command[1:]], dict(environ))


def _located(name: str, environ: Mapping[str, str]) -> str:
    if "/" in name:
        return name
    candidates = (os.path.join(folder, name) for folder in os.get_exec_path(dict(environ)))
    return next((path for path in candidates if os.access(path, os.X_OK)), name)


def not_started(name: str, code: int) -> NotStartedError:
    """Return the error of a command ``name`` whose execution failed with ``code``, in the words of a shell."""
    if code == errno.ENOENT:
        if "/" not in name:
            return NotStartedError(f"{name}: command not found", 127)
        lacks = "cannot execute: required file not found" if os.path.exists(name) else os.strerror(code)
        return NotStartedError(f"{name}: {lacks}", 127)
    if code == errno.EACCES and os.path.isdir(name):
        code = errno.EISDIR
    return NotStartedError(f"{name}: {os.strerror(code)}", 126)


def wait(pid: int, watch: Callable[[], float], forwarding: Forwarding) -> Outcome:
    """Stay with the job until its end: pass signals on, stop when it stops; call ``watch`` after the seconds that it says."""
    due = time.monotonic()
    while True:
        until = min(due, forwarding.due)
        info = signal.sigtimedwait(_WAITED, max(0.0, until - time.monotonic()))
        now = time.monotonic()
        if info is not None and info.si_signo == signal.SIGCHLD:
            outcome = _reap(pid)
            if outcome is not None:
                return outcome
        if info is not None and not (info.si_signo == signal.SIGCHLD and info.si_code > 0):
            forwarding.add(info, now)
        for one in forwarding.ready(now):
            _pass_on(one, pid)
        if now >= due:
            due = watch() + time.monotonic()


def _pass_on(info: signal.struct_siginfo, pid: int) -> None:
    """Send the job what this process was sent, with the number that came along."""
    with contextlib.suppress(PermissionError, ProcessLookupError):  # it runs as somebody else now
        if info.si_code != _SI_QUEUE or not _queue(info, pid):
            os.kill(pid, info.si_signo)


def _queue(info: signal.struct_siginfo, pid: int) -> bool:
    """Return whether the signal was queued with its value."""
    import ctypes  # noqa: PLC0415 - few signals have a value

    # Where siginfo_t has a child's status, that of a queued signal has its value: <bits/types/siginfo_t.h>.
    queue = ctypes.CDLL(None).sigqueue
    return bool(queue(pid, info.si_signo, ctypes.c_void_p(info.si_status & 0xFFFFFFFF)) == 0)


def is_interrupted(seconds: float) -> bool:
    """Wait ``seconds``; True at once when somebody wants this process to end. For the time after the job."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        info = signal.sigtimedwait(_WAITED, left)
        if info is not None and info.si_signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            return True
    return False


def _reap(pid: int) -> Outcome | None:
    """Return how the job ended, None when it runs on; stop together with it."""
    stopped_by = 0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if not done:
            if not stopped_by:
                return None
            _stop_like(stopped_by)
            stopped_by = 0
        elif os.WIFSTOPPED(status):
            stopped_by = os.WSTOPSIG(status)
        elif os.WIFCONTINUED(status):
            stopped_by = 0
        elif os.WIFSIGNALED(status):
            return Outcome(None, os.WTERMSIG(status))
        else:
            return Outcome(os.WEXITSTATUS(status), None)


def _stop_like(number: int) -> None:
    """Stop as the job did, so that a shell sees it; returns when somebody lets this process go on."""
    if number == signal.SIGSTOP:
        os.kill(os.getpid(), number)
        return
    before = signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    signal.signal(number, before)
