"""`tfprof start` and `tfprof stop`: the user's own agent and collector."""

import click

from ..agent.local_daemons import DAEMONS, daemons_of, pid_if_up, start_and_wait, stop_and_wait
from ..collector.daemon_status import checked_instance_dir
from ..commands.daemons import read_status, running_pid
from ..commands.streams import print_lines
from ..formats.runtime_dir import make_instance
from ..formats.settings import SETTINGS
from .command import folder_option


@click.command()
@folder_option
def start(store: str) -> None:
    """Start the agent and the collector of a store now.

    tfprof-run starts them automatically when needed.
    """
    for setting in SETTINGS.values():
        if set(DAEMONS) & set(setting.users):
            setting.read()  # an invalid value is reported here, instead of by a daemon that does not start
    instance_dir = make_instance(store)
    for name in reversed(daemons_of(store)):
        pid = pid_if_up(instance_dir, name)
        state = "already running" if pid else "started"
        print_lines([f"{name}: {state}, pid {pid or start_and_wait(name, store, instance_dir)}"])


@click.command()
@folder_option
def stop(store: str) -> None:
    """Stop the agent and the collector of a store.

    Until they run again, records of jobs wait in the jobs' memory.
    """
    instance_dir = checked_instance_dir(store)
    for name in daemons_of(store):
        pid = running_pid(instance_dir, name)
        is_service = bool(pid) and bool((read_status(instance_dir, name) or {}).get("service"))
        if pid:
            stop_and_wait(name, instance_dir, pid)
        service = "; it was a service: tfprof serve starts it again" if is_service else ""
        print_lines([f"{name}: {'stopped' if pid else 'not running'}{service}"])
