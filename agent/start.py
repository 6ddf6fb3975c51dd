"""Starts the daemons of an instance when they do not live."""

import os
import time
from typing import Final

from tfprof.shim import daemons

AGENT: Final = "agent"
COLLECTOR: Final = "collector"
_MODULES: Final = {AGENT: "tfprof.agent.daemon", COLLECTOR: "tfprof.collector.daemon"}
#: A daemon that does not come up is tried again after so long, and after twice as long each further time (seconds).
FIRST_DELAY_S: Final = 1.0
LAST_DELAY_S: Final = 30.0
#: One that was killed at its start is no trouble yet.
TRIES: Final = 3


def log_path(place: str, name: str) -> str:
    """Return the log of daemon ``name``."""
    return os.path.join(place, name + ".log")


def start(place: str, store: str, name: str) -> None:
    """Start daemon ``name`` of the instance ``place`` and return at once; DaemonError when that cannot be done."""
    daemons.spawn(_MODULES[name], ["--store", store], log_path(place, name))


def last_words(place: str, name: str) -> str:
    """Return the last line in the log of daemon ``name``, empty when there is none."""
    try:
        with open(log_path(place, name), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


class Keeper:
    """Keeps daemon ``name`` alive: starts it when it is not, ever more slowly when it does not come up."""

    def __init__(self, place: str, store: str, name: str) -> None:
        self._place = place
        self._store = store
        self._name = name
        self._delay = FIRST_DELAY_S
        self._not_before = 0.0
        self._came_up = daemons.last_pid(place, name)
        self.starts = 0

    def lives(self) -> bool:
        """Return whether it lives, and take note of one that came up."""
        lives = bool(daemons.holder(self._place, self._name))
        last = daemons.last_pid(self._place, self._name)
        if lives or last != self._came_up:  # one that came up and was killed since: its successor need not wait
            self._came_up = last
            self.starts = 0
            self._delay = FIRST_DELAY_S
        return lives

    def look(self) -> bool:
        """Return whether it lives; start it when it does not and its turn has come. DaemonError when it cannot be started."""
        if self.lives():
            return True
        now = time.monotonic()
        if now >= self._not_before:
            self._not_before = now + self._delay
            self._delay = min(2 * self._delay, LAST_DELAY_S)
            self.starts += 1
            start(self._place, self._store, self._name)
        return False

    @property
    def trouble(self) -> str | None:
        """Why it does not come up, None unless it was started `TRIES` times in vain."""
        if self.starts < TRIES:
            return None
        return f"the {self._name} does not start: {last_words(self._place, self._name)} (see {log_path(self._place, self._name)})"
