"""`tfprof start` and `tfprof stop`: the user's own agent and collector."""

import os
import signal
import time
from collections.abc import Callable
from typing import Final

import click

from ..agent.daemon_start import failure_from_log, start_daemon
from ..commands.daemons import DaemonError, failure, is_up, running_pid
from ..formats.runtime_dir import make_instance
from ..formats.settings import SETTINGS
from .command import store_option
from .status import DAEMONS, checked_instance_dir

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


def _start(name: str, store: str, instance_dir: str) -> int:
    """Start a daemon and return its pid.

    DaemonError with the daemon's last message if it does not come up.
    """
    start_ns = time.time_ns()
    start_daemon(instance_dir, store, name)
    is_settled = _wait_until(
        lambda: is_up(instance_dir, name, running_pid(instance_dir, name)) or failure(instance_dir, name, start_ns),
        START_S,
    )
    error = failure(instance_dir, name, start_ns)
    if error is not None:
        raise DaemonError(f"the {name} did not start: {error['text']}", error["slug"])
    if not is_settled:
        error = failure_from_log(instance_dir, name, start_ns)
        raise DaemonError(error["text"], error["slug"])
    return running_pid(instance_dir, name)


def _stop(name: str, instance_dir: str, pid: int) -> None:
    """Stop a daemon and wait for its end; DaemonError if it does not end."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise DaemonError(f"the {name}, pid {pid}, is another user's") from None
    if not _wait_until(lambda: running_pid(instance_dir, name) != pid, STOP_S):
        raise DaemonError(f"the {name}, pid {pid}, is still busy after {STOP_S:.0f} s")


def bring_up(store: str, instance_dir: str) -> None:
    """Start the daemons of ``store`` that do not run; DaemonError if one does not come up."""
    for name in reversed(DAEMONS):
        if not running_pid(instance_dir, name):
            _start(name, store, instance_dir)


@click.command()
@store_option
def start(store: str) -> None:
    """Start the agent and the collector of a store now.

    tfprof-run starts them automatically when needed.
    """
    for setting in SETTINGS.values():
        if set(DAEMONS) & set(setting.users):
            setting.read()  # an invalid value is reported here, instead of by a daemon that does not start
    instance_dir = make_instance(store)
    for name in reversed(DAEMONS):
        pid = running_pid(instance_dir, name)
        state = f"already running, pid {pid}" if pid else f"started, pid {_start(name, store, instance_dir)}"
        click.echo(f"{name}: {state}")


@click.command()
@store_option
def stop(store: str) -> None:
    """Stop the agent and the collector of a store.

    Until they run again, records of jobs wait in the jobs' memory.
    """
    instance_dir = checked_instance_dir(store)
    for name in DAEMONS:
        pid = running_pid(instance_dir, name)
        if pid:
            _stop(name, instance_dir, pid)
        click.echo(f"{name}: {'stopped' if pid else 'not running'}")
