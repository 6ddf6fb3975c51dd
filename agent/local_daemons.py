"""Starts and stops the agent and the collector of a store, and waits for it."""

import os
import signal
import time
from collections.abc import Callable
from typing import Final

from ..commands.daemons import DaemonError, failure, is_up, running_pid
from ..formats.runtime_dir import endpoint_elsewhere
from .daemon_start import AGENT, COLLECTOR, failure_from_log, start_daemon

#: Names of the daemons, and of their pid and status files.
DAEMONS: Final = (AGENT, COLLECTOR)
#: Time limits (seconds) for a daemon to start, and to store its data and end. On a busy host the
#: collector gets little processor time.
START_S: Final = 60.0
STOP_S: Final = 60.0
_POLL_S: Final = 0.05


def _wait_until(condition: Callable[[], object], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def pid_if_up(instance_dir: str, name: str) -> int:
    """Return the pid of a daemon, 0 if it does not run or has not come up yet."""
    pid = running_pid(instance_dir, name)
    return pid if is_up(instance_dir, name, pid) else 0


def start_and_wait(name: str, store: str, instance_dir: str) -> int:
    """Start a daemon, or wait for one that is starting; return its pid.

    DaemonError with the daemon's last message if it does not come up.
    """
    start_ns = time.time_ns()
    start_daemon(instance_dir, store, name)
    is_settled = _wait_until(
        lambda: pid_if_up(instance_dir, name) or failure(instance_dir, name, start_ns),
        START_S,
    )
    error = failure(instance_dir, name, start_ns)
    if error is not None:
        raise DaemonError(f"the {name} did not start: {error['text']}", error["slug"])
    if not is_settled:
        error = failure_from_log(instance_dir, name, start_ns)
        raise DaemonError(error["text"], error["slug"])
    return running_pid(instance_dir, name)


def stop_and_wait(name: str, instance_dir: str, pid: int) -> None:
    """Stop a daemon and wait for its end; DaemonError if it does not end."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise DaemonError(f"the {name}, pid {pid}, is another user's") from None
    if not _wait_until(lambda: running_pid(instance_dir, name) != pid, STOP_S):
        raise DaemonError(f"the {name}, pid {pid}, is still busy after {STOP_S:.0f} s")


def daemons_of(store: str) -> tuple[str, ...]:
    """Return the names of the daemons that this user has for ``store`` on this host."""
    return DAEMONS if endpoint_elsewhere(store) is None else (AGENT,)


def bring_up(store: str, instance_dir: str) -> None:
    """Start the daemons of ``store`` that are not up; DaemonError if one does not come up."""
    for name in reversed(daemons_of(store)):
        if not pid_if_up(instance_dir, name):
            start_and_wait(name, store, instance_dir)
