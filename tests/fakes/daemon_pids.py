"""Process ids of the daemons of a runtime folder."""

from tfprof.commands import daemons


def ready_pid(place: str, name: str) -> int:
    """Return the pid of the agent or collector if it has finished its start, otherwise 0."""
    pid = daemons.running_pid(place, name)
    return pid if pid and daemons.is_up(place, name, pid) else 0
