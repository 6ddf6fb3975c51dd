"""The last status of the agent and the collector of a store, from their status files."""

import errno
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..commands.daemons import FAILED, read_status, running_pid
from ..formats import runtime_dir
from ..formats.addresses import is_remote
from .errors import StoreError
from .store import catalog


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """The last status of each daemon of ``store``, as in its status file; `alive`: whether it runs.

    ``runtime``: the runtime folder, with logs and status files.
    """

    store: str
    runtime: str
    agent: Mapping[str, Any]
    collector: Mapping[str, Any]

    @property
    def is_failing(self) -> bool:
        """Whether a daemon could not start, or data is not stored, sent or copied now."""
        return any(map(_is_failing, (self.agent, self.collector)))


#: Keys of a status file that have the reason why data is not stored.
_REASONS: Final = ("stall", "stalled", "spool_failure")


def _is_failing(status: Mapping[str, Any]) -> bool:
    if not status["alive"]:
        return bool(status.get(FAILED) or status.get("spool_bytes"))
    copy = status.get("copy")
    return any(map(status.get, _REASONS)) or bool(isinstance(copy, Mapping) and copy.get("error"))


def checked_instance_dir(store: str) -> str:
    """Return the instance folder of ``store``; neither needs to exist yet.

    StoreError if no daemon runs and ``store`` cannot be a store.
    """
    instance_dir = runtime_dir.instance_dir(store)
    if is_remote(store):
        return instance_dir
    if not any(running_pid(instance_dir, name) for name in ("agent", "collector")):
        try:
            catalog.check(Path(store))
        except StoreError as error:
            if error.slug != "store-missing" or not _may_become_store(store):
                raise
    return instance_dir


def _may_become_store(store: str) -> bool:
    try:
        return stat.S_ISDIR(Path(store).stat().st_mode)
    except OSError as error:
        return error.errno == errno.ENOENT


def stall(store: str) -> str:
    """Return the reason why the daemons of ``store`` store nothing now, '' if there is none."""
    instance_dir = runtime_dir.instance_dir(store)
    for name, key in (("agent", "stall"), ("collector", "stalled")):
        status = read_status(instance_dir, name) or {}
        reason = status.get(key) if status.get("alive") else None
        if isinstance(reason, Mapping):
            return str(reason.get("text"))
    return ""


def daemon_status(store: str) -> DaemonStatus:
    """Return the last status of each daemon of ``store``.

    StoreError if no daemon runs and ``store`` cannot be a store. A collector on another host, or of
    another user, has no status here. For a collector that is not running, the decoder is the one
    that is installed here, which it would use.
    """
    instance_dir = checked_instance_dir(store)
    agent, collector = (read_status(instance_dir, name) or {"alive": False} for name in ("agent", "collector"))
    if is_remote(store):
        collector["is_remote"] = True
    elif runtime_dir.shared_endpoint(store) is not None and not collector["alive"]:
        collector["is_shared"] = True
    elif "decoder" not in collector:
        from .decoders.decode import decoder  # noqa: PLC0415  # slow to import

        collector["decoder"] = decoder("auto").name
    return DaemonStatus(store, instance_dir, agent, collector)
