"""Runs the user's command for alerts (`alert-command`).

One command runs at a time, and there is a minimum interval for each job.
"""

import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Mapping
from typing import Final

from ..commands.streams import clean

#: Minimum interval between two runs for the same job (seconds).
INTERVAL_S: Final = 60.0
#: Time limit of a command; after it the command is killed (seconds).
TIMEOUT_S: Final = 60.0
#: Maximum number of queued runs; further alerts are only stored.
QUEUED_MAX: Final = 20


class AlertCommand:
    """The runs of ``command`` in a shell, with the alert in the environment.

    The output of the command goes to the collector's log. `command` may be replaced.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self._queue: deque[dict[str, str]] = deque()
        self._not_before: dict[int, float] = {}
        self._running: subprocess.Popen[bytes] | None = None
        self._deadline = 0.0

    def add(self, uid: int, values: Mapping[str, str], now: float) -> None:
        """Queue a run about job ``uid``.

        Nothing is queued if there is no command, if the job's last run was queued within
        INTERVAL_S, or if the queue is full. ``values``: the environment variables, named without
        their prefix; their control characters are replaced.
        """
        if not self.command or now < self._not_before.get(uid, 0.0) or len(self._queue) >= QUEUED_MAX:
            return
        self._not_before = {job: end_s for job, end_s in self._not_before.items() if end_s > now}
        self._not_before[uid] = now + INTERVAL_S
        self._queue.append({f"TFPROF_ALERT_{name.upper()}": clean(text) for name, text in values.items()})

    def tick(self, now: float) -> None:
        """Start the next command if none runs; OSError if it cannot be started.

        A command that still runs after its time limit is killed.
        """
        if self._running is not None:
            if self._running.poll() is None:
                if now >= self._deadline:
                    self._kill(self._running)  # no wait for its end: it may be in a system call that does not return
                return
            self._running = None
        if self._queue:
            self._running = self._start(self._queue.popleft())
            self._deadline = now + TIMEOUT_S

    def close(self) -> None:
        """Stop waiting for a running command, which continues to run."""
        self._running = None

    def _start(self, variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S602  # the user's own command, from the user's own settings
            self.command,
            shell=True,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    @staticmethod
    def _kill(process: "subprocess.Popen[bytes]") -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
