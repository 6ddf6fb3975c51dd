"""Process ids of the daemons of an instance folder."""

from tfprof.commands import daemons


def ready_pid(instance_dir: str, name: str) -> int:
    """Return the pid of the agent or collector if it has finished its start, otherwise 0."""
    pid = daemons.running_pid(instance_dir, name)
    return pid if pid and daemons.is_up(instance_dir, name, pid) else 0
