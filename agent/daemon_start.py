"""Starts the daemons of an instance when they do not live."""

import os
import re
import time
from typing import Final

from ..commands import daemons
from ..formats.private_files import read_file

AGENT: Final = "agent"
COLLECTOR: Final = "collector"
_MODULES: Final = {AGENT: "tfprof.agent.__main__", COLLECTOR: "tfprof.collector.__main__"}
#: Slug of a daemon that does not start and gives no reason.
_SLUG: Final = re.compile(r"(?:tfprof: )?(.*) \[([a-z-]+)\]")
_DEFAULT_SLUGS: Final = {AGENT: {"slug": "agent"}, COLLECTOR: {"slug": "collector"}}
#: A daemon that does not come up is tried again after so long, and after twice as long each further time; one that says why it
#: cannot, as late as that (seconds).
FIRST_DELAY_S: Final = 1.0
LAST_DELAY_S: Final = 300.0
#: One that was killed at its start is no trouble yet.
TRIES: Final = 3


def log_path(instance_dir: str, name: str) -> str:
    """Return the log of daemon ``name``."""
    return os.path.join(instance_dir, name + ".log")


def start(instance_dir: str, store: str, name: str) -> None:
    """Start daemon ``name`` of the instance ``instance_dir`` and return at once; DaemonError when that cannot be done."""
    daemons.spawn(_MODULES[name], ["--store", store], log_path(instance_dir, name))


def last_log_line(instance_dir: str, name: str, since_ns: int = 0) -> str:
    """Return the last line in the log of daemon ``name``, empty when there is none, or none since then (real time, ns)."""
    path = log_path(instance_dir, name)
    try:
        written_ns = os.stat(path).st_mtime_ns
    except OSError:
        return ""
    if written_ns < since_ns:
        return ""
    lines = (read_file(path, 4096, last=True) or b"").decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def silent(instance_dir: str, name: str, since_ns: int = 0) -> dict[str, str]:
    """Return slug and text of why daemon ``name``, which left no status, does not come up: by its last words since then."""
    words = last_log_line(instance_dir, name, since_ns) or "it says nothing"
    said = _SLUG.fullmatch(words)
    slug = {"slug": said[2]} if said else _DEFAULT_SLUGS[name]
    return {
        **slug,
        "text": f"the {name} does not start: {said[1] if said else words} (see {log_path(instance_dir, name)})",
    }


class DaemonSupervisor:
    """Keeps daemon ``name`` alive: starts it when it is not, ever more slowly when it does not come up."""

    def __init__(self, instance_dir: str, store: str, name: str) -> None:
        self._instance_dir = instance_dir
        self._store = store
        self._name = name
        self._delay = FIRST_DELAY_S
        self._started_s = -LAST_DELAY_S
        self._started_ns = 0
        self._spawn_failure: dict[str, str] | None = None
        self._came_up = self.pid = daemons.last_pid(instance_dir, name)
        self.starts = 0

    def is_running(self) -> bool:
        """Return whether it lives, and take note of one that came up."""
        is_running = bool(daemons.holder(self._instance_dir, self._name))
        #: The process that is it, or was it last; 0 after one that ended in order.
        self.pid = daemons.last_pid(self._instance_dir, self._name)
        # One that came up and was killed since: its successor need not wait.
        if self.pid != self._came_up and daemons.is_up(self._instance_dir, self._name, self.pid):
            self._came_up = self.pid
            self.soon()
        return is_running

    def soon(self) -> None:
        """Have it tried again at once where it does not live: what stood in its way may be gone."""
        self.starts = 0
        self._spawn_failure = None
        self._delay = FIRST_DELAY_S
        self._started_s = -LAST_DELAY_S

    def look(self) -> bool:
        """Return whether it lives; start it when it does not and its turn has come. DaemonError when it cannot be started."""
        if self.is_running():
            return True
        now = time.monotonic()
        if now >= self._started_s + (LAST_DELAY_S if self._reported_failure() else self._delay if self.starts else 0.0):
            self._delay = min(2 * self._delay, LAST_DELAY_S) if self.starts else FIRST_DELAY_S
            self.starts += 1
            self._started_s, self._started_ns = now, time.time_ns()
            self._spawn_failure = None
            try:
                start(self._instance_dir, self._store, self._name)
            except daemons.DaemonError as error:
                self._spawn_failure = {"slug": error.slug, "text": error.args[0]}
                raise
        return False

    @property
    def trouble(self) -> dict[str, str] | None:
        """Why it does not come up, as slug and text: what is known of it, else None unless it was started `TRIES` times in vain."""
        failure = self._spawn_failure or self._reported_failure()
        if failure is not None or self.starts < TRIES:
            return failure
        return silent(self._instance_dir, self._name)

    def _reported_failure(self) -> dict[str, str] | None:
        """Return why it could not start when it was started last, as it said itself; None where it did not."""
        return daemons.failure(self._instance_dir, self._name, self._started_ns) if self.starts else None
