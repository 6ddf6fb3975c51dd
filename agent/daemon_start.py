"""Starts the daemons of an instance and restarts them when they fail."""

import os
import re
import time
from typing import Final

from ..commands import daemons
from ..formats.errors import FolderError
from ..formats.private_files import read_file, read_json

AGENT: Final = "agent"
COLLECTOR: Final = "collector"
_MODULES: Final = {AGENT: "tfprof.agent.__main__", COLLECTOR: "tfprof.collector.__main__"}
#: A log line with a slug at its end.
_LINE_WITH_SLUG: Final = re.compile(r"(?:tfprof: )?(.*) \[([a-z-]+)\]")
#: Slug of a daemon that does not start and gives no reason.
_DEFAULT_SLUGS: Final = {AGENT: {"slug": "agent"}, COLLECTOR: {"slug": "collector"}}
#: First and longest delay before a restart (seconds); the delay doubles each time. A daemon that
#: reports why it fails is restarted after the longest delay.
FIRST_DELAY_S: Final = 1.0
MAX_DELAY_S: Final = 300.0
#: Number of failed starts without a known reason after which the failure is reported.
TRIES: Final = 3


def log_path(instance_dir: str, name: str) -> str:
    """Return the path of the log of daemon ``name``."""
    return os.path.join(instance_dir, name + ".log")


def start_daemon(instance_dir: str, store: str, name: str) -> None:
    """Start daemon ``name`` of the instance, unless it runs or is starting; return at once.

    DaemonError when that fails.
    """
    lock = daemons.PidFileLock(instance_dir, name)
    try:
        if lock.take():
            daemons.spawn(_MODULES[name], ["--store", store], log_path(instance_dir, name), lock)
    except OSError as error:
        text = f"cannot use {error.filename or lock.path}: {error.strerror}"
        raise daemons.DaemonError(text, FolderError.slug) from None
    finally:
        lock.close()


def _last_log_line(instance_dir: str, name: str, since_ns: int) -> str:
    """Return the last line in the log of daemon ``name``, empty when there is none.

    It is also empty when the log was last written before ``since_ns`` (real time).
    """
    path = log_path(instance_dir, name)
    try:
        written_ns = os.stat(path).st_mtime_ns
    except OSError:
        return ""
    if written_ns < since_ns:
        return ""
    lines = (read_file(path, 4096, last=True) or b"").decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def failure_from_log(instance_dir: str, name: str, since_ns: int = 0) -> dict[str, str]:
    """Return slug and text from the log of a daemon that failed and reported no reason."""
    line = _last_log_line(instance_dir, name, since_ns) or "its log is empty"
    match = _LINE_WITH_SLUG.fullmatch(line)
    slug = {"slug": match[2]} if match else _DEFAULT_SLUGS[name]
    return {
        **slug,
        "text": f"the {name} does not start: {match[1] if match else line} (see {log_path(instance_dir, name)})",
    }


class DaemonSupervisor:
    """Keeps the daemon ``name`` running; the delay before a restart grows while it fails."""

    def __init__(self, instance_dir: str, store: str, name: str) -> None:
        self._instance_dir = instance_dir
        self._store = store
        self._name = name
        self._delay_s = FIRST_DELAY_S
        self._started_s = -MAX_DELAY_S
        self._started_ns = 0
        self._spawn_failure: dict[str, str] | None = None
        #: Pid of the last process, running or killed; 0 after an orderly end.
        self.pid = daemons.last_pid(instance_dir, name)
        self._up_pid = self.pid  # pid of the last process that has come up
        self.starts = 0

    def is_running(self) -> bool:
        """Return whether the daemon runs; reset the delay when a new process has come up."""
        is_running = bool(daemons.running_pid(self._instance_dir, self._name))
        self.pid = daemons.last_pid(self._instance_dir, self._name)
        # If a process came up and was killed since, its successor need not wait.
        if self.pid != self._up_pid and daemons.is_up(self._instance_dir, self._name, self.pid):
            self._up_pid = self.pid
            self.reset_delay()
        return is_running

    @property
    def was_stopped(self) -> bool:
        """Whether a user stopped the daemon, and this object has not started it since."""
        status = read_json(os.path.join(self._instance_dir, f"{self._name}.json"))
        return status is not None and bool(status.get("stopped")) and self.starts == 0

    def reset_delay(self) -> None:
        """Forget earlier failures, whose cause may be gone: a start is due at once."""
        self.starts = 0
        self._spawn_failure = None
        self._delay_s = FIRST_DELAY_S
        self._started_s = -MAX_DELAY_S

    def ensure_running(self) -> bool:
        """Return whether the daemon runs; start it if it does not and a start is due.

        DaemonError when it cannot be started.
        """
        if self.is_running():
            return True
        now = time.monotonic()
        if now >= self._started_s + (
            MAX_DELAY_S if self._reported_failure() else self._delay_s if self.starts else 0.0
        ):
            self._delay_s = min(2 * self._delay_s, MAX_DELAY_S) if self.starts else FIRST_DELAY_S
            self.starts += 1
            self._started_s, self._started_ns = now, time.time_ns()
            self._spawn_failure = None
            try:
                start_daemon(self._instance_dir, self._store, self._name)
            except daemons.DaemonError as error:
                self._spawn_failure = {"slug": error.slug, "text": error.args[0]}
                raise
        return False

    @property
    def failure(self) -> dict[str, str] | None:
        """The reason why the daemon does not run, as slug and text.

        None when no reason is known and the daemon was started fewer than `TRIES` times.
        """
        failure = self._spawn_failure or self._reported_failure()
        if failure is not None or self.starts < TRIES:
            return failure
        return failure_from_log(self._instance_dir, self._name)

    def _reported_failure(self) -> dict[str, str] | None:
        """Return the failure that the daemon reported since its last start, None without one."""
        return daemons.failure(self._instance_dir, self._name, self._started_ns) if self.starts else None
