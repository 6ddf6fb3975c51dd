"""Where the agent's data goes: to a local collector, which it keeps running, or to a service."""

from typing import Final, NamedTuple

from ...formats.addresses import Endpoint, local_endpoint
from ...formats.runtime_dir import endpoint_elsewhere
from ..daemon_start import COLLECTOR, DaemonSupervisor

#: Minimum time that data of ended jobs waits for a collector (seconds). A local one starts within
#: seconds; a host or a service may be away for longer.
LOCAL_WAIT_S: Final = 15.0
REMOTE_WAIT_S: Final = 3600.0


class NoSupervisor:
    """The supervisor of a collector on another host or of a service: it starts nothing."""

    pid = 0
    failure: dict[str, str] | None = None

    def ensure_running(self) -> bool:
        """Return True: others see to it."""
        return True

    def reset_delay(self) -> None:
        """Do nothing."""


class Destination(NamedTuple):
    """A collector: its endpoint, its supervisor, and the minimum time to wait for it (seconds)."""

    endpoint: Endpoint
    supervisor: DaemonSupervisor | NoSupervisor
    wait_s: float


def destination(store: str, instance_dir: str) -> Destination:
    """Return the collector of ``store``, a folder or the address of a collector."""
    elsewhere = endpoint_elsewhere(store)
    if elsewhere is not None:
        return Destination(elsewhere, NoSupervisor(), REMOTE_WAIT_S)
    supervisor = DaemonSupervisor(instance_dir, store, COLLECTOR)
    return Destination(local_endpoint(instance_dir), supervisor, LOCAL_WAIT_S)
