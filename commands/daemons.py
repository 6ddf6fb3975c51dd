"""Functions for the daemons, agent and collector: locked pid file, status file, detached start."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from ..formats.errors import FolderError, TfprofError
from ..formats.private_files import open_regular, read_json, write_json
from ..formats.runtime_dir import make_instance
from . import descriptors, library_path, service_manager, settings_files, streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Environment variables that a daemon gets. It must not get the settings and secrets of a job.
ENVIRONMENT = frozenset(
    [
        "HOME",
        "LANG",
        "LC_ALL",
        "LOGNAME",
        "PATH",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    ]
)
OWN_PREFIX = "TFPROF_"
#: Settings of jobs that daemons do not get.
JOB_ONLY = frozenset(["TFPROF_RUN", "TFPROF_TRACE", "TFPROF_TRACE_LEVEL", "TFPROF_RING"])
#: Timeout for the lock (seconds). A check whether the daemon runs takes the lock for microseconds.
LOCK_TIMEOUT_S = 0.5
#: Descriptor of the lock that a spawned daemon inherits.
_LOCK_FD = 3
LOG_MAX = 1 << 20
#: The script that runs daemons, the report and the attach helper, isolated from the job's Python
#: settings.
ISOLATED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "isolated.py")
#: Key in the status of a daemon that ended by an error; `last_error` has the reason.
FAILED = "failed"


class DaemonError(TfprofError):
    """A daemon that cannot be started or stopped."""

    slug = "daemon"


class PidFileLock:
    """The pid file of a daemon; its lock ends with the daemon at the latest.

    The lock is taken before the daemon is spawned, and the daemon inherits it. No second daemon can
    therefore be started while the first one is starting.
    """

    def __init__(self, instance_dir: str, name: str) -> None:
        self.path = os.path.join(instance_dir, name + ".pid")
        self.fd = -1

    def acquire(self) -> bool:
        """Take the lock for this process, unless it was inherited, and write this pid.

        Return False when another process has the lock. OSError when the file cannot be opened or
        written.
        """
        if self._inherit():
            return True
        if not self.take():
            return False
        self.write_pid()
        return True

    def take(self) -> bool:
        """Take the lock and empty the file; return False when another process has the lock.

        OSError when the file cannot be opened or written.
        """
        fd = _above_standard(open_regular(self.path, os.O_RDWR | os.O_CREAT))
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while not _flock(fd, fcntl.LOCK_EX):
            # A check takes a shared lock. If a shared lock fails here, too, a daemon has the lock.
            if not _flock(fd, fcntl.LOCK_SH) or time.monotonic() > deadline:
                os.close(fd)
                return False
            fcntl.flock(fd, fcntl.LOCK_UN)
            time.sleep(0.02)
        os.ftruncate(fd, 0)
        self.fd = fd
        return True

    def _inherit(self) -> bool:
        """Use the lock that this process inherited; return False when it inherited none."""
        try:
            is_inherited = os.path.samestat(os.fstat(_LOCK_FD), os.lstat(self.path)) and _flock(_LOCK_FD, fcntl.LOCK_EX)
        except OSError:
            return False
        if is_inherited:
            os.set_inheritable(_LOCK_FD, False)
            self.fd = _LOCK_FD
        return is_inherited

    def write_pid(self) -> None:
        """Write the pid of this process into the file."""
        os.pwrite(self.fd, b"%d\n" % os.getpid(), 0)

    def close(self) -> None:
        """Close the file; the lock stays with a daemon that has inherited it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def release(self) -> None:
        """Release the lock; the file stays, so that no process locks an unlinked file."""
        if self.fd >= 0:
            os.ftruncate(self.fd, 0)
        self.close()


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def interval_s(took_s: float, share: float, bounds: tuple[float, float]) -> float:
    """Return an interval at which work takes ``share`` of a core, within ``bounds`` (seconds).

    ``took_s``: its processor time, not that of the clock: on a busy host, waiting for a processor
    is no work.
    """
    low, high = bounds
    return min(high, max(low, took_s / share))


def allow_descriptors(number: int) -> None:
    """Raise this process's limit of open files to ``number``, or as far as allowed."""
    import resource

    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = number if hard_limit == resource.RLIM_INFINITY else min(number, hard_limit)
    if soft_limit != resource.RLIM_INFINITY and soft_limit < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard_limit))


def running_pid(instance_dir: str, name: str) -> int:
    """Return the pid of the running daemon ``name`` of the instance, 0 when none runs."""
    return _pid_in_file(instance_dir, name, True)


def last_pid(instance_dir: str, name: str) -> int:
    """Return the pid of the running daemon ``name``, or of the last one if that was killed.

    Return 0 if the last daemon ended by itself, or if there was none.
    """
    return _pid_in_file(instance_dir, name, False)


def _pid_in_file(instance_dir: str, name: str, only_running: bool) -> int:
    try:
        fd = open_regular(os.path.join(instance_dir, name + ".pid"), os.O_RDONLY)
    except OSError:
        return 0
    try:
        if only_running and _flock(fd, fcntl.LOCK_SH):
            return 0
        text = os.pread(fd, 20, 0).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(fd)


def read_status(instance_dir: str, name: str) -> dict[str, Any] | None:
    """Return the last status of the daemon ``name``, with ``alive`` set.

    None when the daemon never wrote a status and does not run.
    """
    status = read_json(os.path.join(instance_dir, name + ".json"))
    pid = running_pid(instance_dir, name)
    if status is None and not pid:
        return None
    status = status if status is not None else {"pid": pid}
    status["alive"] = pid != 0
    return status


def is_up(instance_dir: str, name: str, pid: int) -> bool:
    """Return whether process ``pid`` is or was the daemon ``name`` and has started completely.

    A daemon that holds the lock may still fail to start.
    """
    status = read_json(os.path.join(instance_dir, name + ".json")) if pid else None
    return status is not None and status.get("pid") == pid and not status.get(FAILED)


def failure(instance_dir: str, name: str, since_ns: int) -> dict[str, str] | None:
    """Return slug and text of the error that ended the daemon since ``since_ns``, None if none."""
    status = read_json(os.path.join(instance_dir, name + ".json"))
    written_ns = status.get("written_ns") if status is not None and status.get(FAILED) else None
    if status is None or not isinstance(written_ns, int) or written_ns < since_ns:
        return None
    last_error = status.get("last_error")
    return {key: str(last_error.get(key)) for key in ("slug", "text")} if isinstance(last_error, dict) else None


def run(name: str, store: str, serve: Callable[[], int]) -> int:
    """Run ``serve`` as the daemon ``name`` of ``store`` and return its exit status.

    The exit status is 1 when such a daemon already runs. The lock is taken before slow work, such
    as the imports in ``serve``, so that no second daemon starts meanwhile. After a failure, the
    status file has the reason.
    """
    try:
        instance_dir = make_instance(store)
        lock = PidFileLock(instance_dir, name)
        if not lock.acquire():
            streams.note("another %s serves %s [store-in-use]" % (name, store), level=streams.ERROR)
            return 1
    except FolderError as error:
        streams.note(str(error), level=streams.ERROR)
        return error.exit_code
    except OSError as error:
        return _record_failure(
            instance_dir, name, FolderError("cannot use %s: %s" % (error.filename or instance_dir, error.strerror))
        )
    try:
        return serve()
    except TfprofError as error:
        return _record_failure(instance_dir, name, error)
    except OSError as error:
        return _record_failure(
            instance_dir, name, FolderError("cannot use %s: %s" % (error.filename or instance_dir, error.strerror))
        )
    finally:
        lock.release()


def _record_failure(instance_dir: str, name: str, error: TfprofError) -> int:
    """Record why the daemon ``name`` failed; return its exit status."""
    streams.note(str(error), level=streams.ERROR)
    last_error = {"slug": error.slug, "text": error.args[0]}
    status = {"pid": os.getpid(), "written_ns": time.time_ns(), FAILED: True, "last_error": last_error}
    try:
        write_json(os.path.join(instance_dir, name + ".json"), status)
    except OSError as write_error:
        streams.note("cannot write in %s: %s" % (instance_dir, write_error.strerror), level=streams.WARNING)
    return error.exit_code


def spawn(module: str, args: list[str], log: str, lock: PidFileLock) -> None:
    """Start `main` of ``module`` as a detached daemon with output to ``log``; return at once.

    The daemon gets ``lock``, which is open and taken. DaemonError when no process could be started.
    """
    command = isolated_command(module, args)
    environment = daemon_environment(settings_files.without_file_values(os.environ))
    try:
        log_fd = _open_log(log)
        try:
            child = os.fork()
            if child == 0:
                _become_daemon(command, environment, log_fd, lock)
        finally:
            os.close(log_fd)
        error_number = _wait(child)
    except OSError as error:
        raise DaemonError("cannot start %s: %s" % (module, error.strerror)) from None
    if error_number:
        raise DaemonError("cannot start %s: %s" % (module, os.strerror(error_number)))


def _wait(child: int) -> int:
    """Return the exit code of ``child`` when it ends.

    Until ``child`` has its own session, a signal that stops the process group stops it, too. A
    SIGCONT to this process alone then continues both.
    """
    while True:
        status = os.waitpid(child, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        os.kill(child, signal.SIGCONT)


def become(module: str, args: list[str], lock: PidFileLock) -> None:
    """Replace this process by `main` of ``module``, as a service in the foreground.

    It gets ``lock``, which is open and taken, and the variables of the service manager. Output and
    session stay. OSError when that fails.
    """
    command = isolated_command(module, args)
    environment = daemon_environment(settings_files.without_file_values(os.environ))
    names = (*service_manager.VARIABLES, streams.JOURNAL)
    of_manager = {name: os.environ[name] for name in names if name in os.environ}
    lock.write_pid()
    os.umask(0o077)
    os.chdir("/")
    _pass_on(lock)
    os.execve(command[0], command, environment | of_manager)


def isolated_command(module: str, args: list[str]) -> list[str]:
    """Return the command for `main` of ``module``, isolated from the job's Python settings."""
    return [sys.executable, "-I", "-S", ISOLATED, module] + list(args)


def daemon_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environment`` that a daemon gets."""
    libraries = library_path.needed_folders(environment.get(library_path.LIBRARY_PATH, ""))
    variables = {
        name: text
        for name, text in environment.items()
        if name in ENVIRONMENT or (name.startswith(OWN_PREFIX) and name not in JOB_ONLY)
    }
    return variables | ({library_path.LIBRARY_PATH: libraries} if libraries else {})


def _flock(fd: int, operation: int) -> bool:
    """Lock ``fd`` without waiting; return whether that succeeded."""
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pass_on(lock: PidFileLock) -> None:
    """Let the next program of this process inherit ``lock``."""
    os.dup2(lock.fd, _LOCK_FD)
    os.set_inheritable(_LOCK_FD, True)  # dup2 leaves the flag if the descriptors are equal


def _open_log(path: str) -> int:
    """Open the log at ``path`` for appending; first rename it to .old if it is large."""
    try:
        if os.stat(path).st_size > LOG_MAX:
            os.replace(path, path + ".old")
    except FileNotFoundError:
        pass
    return _above_standard(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))


def _above_standard(fd: int) -> int:
    """Return a descriptor above 2 for the file of ``fd``.

    ``fd`` is 2 or lower if a standard stream was closed when the file was opened.
    """
    if fd > 2:
        return fd
    new_fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return new_fd


def _become_daemon(command: list[str], environment: dict[str, str], log_fd: int, lock: PidFileLock) -> None:
    """Start the daemon from this forked child. Never returns.

    The daemon has its own session and the default signal actions, and inherits no descriptor but
    ``log_fd`` and that of ``lock``. If the daemon cannot be forked, the exit status of this child
    is the errno.
    """
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
    except OSError as error:
        os._exit(error.errno or 1)
    try:
        os.umask(0o077)
        os.chdir("/")
        os.dup2(_above_standard(os.open(os.devnull, os.O_RDWR)), 0)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        lock.write_pid()  # a daemon that is stopped as soon as its pid is known holds no stream of the caller
        _pass_on(lock)
        descriptors.close_all_except(_LOCK_FD)
        for number in range(1, signal.NSIG):
            if number not in (signal.SIGKILL, signal.SIGSTOP) and not 32 <= number < signal.SIGRTMIN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execve(command[0], command, environment)
    except BaseException as error:  # this child must never return into the caller's code
        os.write(2, ("cannot start: %r\n" % (error,)).encode())
    finally:
        os._exit(127)
