"""Removes stale folders: exports of profiler sessions, and runtime folders of deleted stores."""

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from typing import Final

from ...commands import daemons
from ...formats import runtime_dir
from ...formats.addresses import is_remote
from .. import daemon_start, launches, processes
from . import lost_processes

#: Parent folders and name pattern of exports: the folders into which profiler sessions write. An
#: export exists for seconds, but remains if its job is killed meanwhile.
EXPORT_FOLDERS: Final = ("/dev/shm", "/tmp")  # noqa: S108 - only private folders of this user are removed there
_EXPORT_NAME: Final = re.compile(r"tfprof-(\d{1,9})-[0-9a-f]{16}")
_INSTANCE_NAME: Final = re.compile(r"[0-9a-f]{12}")
#: Age below which a folder may be in use by an invisible process, as in a container (seconds).
RECENT_S: Final = 60.0


def remove_exports(pid: int | None = None) -> None:
    """Remove the exports of processes that are gone.

    ``pid`` is a process of this host: if it is gone, even its recent exports are removed.
    """
    for path, owner in _exports():
        process = processes.process(owner)
        if (process is None or not process.is_alive) and (owner == pid or not _is_recent(path)):
            shutil.rmtree(path, ignore_errors=True)


def _exports() -> Iterator[tuple[str, int]]:
    for folder in EXPORT_FOLDERS:
        for name in _names(folder):
            match = _EXPORT_NAME.fullmatch(name)
            path = os.path.join(folder, name)
            if match is not None and _is_folder(path):
                yield path, int(match[1])


def remove_instances(own_instance: str) -> None:
    """Remove the runtime folders of deleted stores, except ``own_instance`` and those in use."""
    root = runtime_dir.runtime_root()
    for name in _names(root):
        instance_dir = os.path.join(root, name)
        if _INSTANCE_NAME.fullmatch(name) and instance_dir != own_instance and _is_folder(instance_dir):
            with contextlib.suppress(OSError):  # another agent removes it, too
                if _is_stale(instance_dir):
                    _remove(instance_dir)


def _is_stale(instance_dir: str) -> bool:
    """Whether the store of the instance is gone and no process uses the instance.

    A store on a network may come back. What is kept about data that was given up is then stored.
    """
    store = runtime_dir.store_of(instance_dir)
    if store is None or is_remote(store) or os.path.lexists(store) or _is_recent(instance_dir):
        return False
    if lost_processes.has_waiting_jobs(instance_dir):
        return False
    if any(daemons.running_pid(instance_dir, name) for name in (daemon_start.AGENT, daemon_start.COLLECTOR)):
        return False
    try:
        numbers = launches.list_launches(instance_dir)
    except FileNotFoundError:
        numbers = []
    descriptions = [launches.read(instance_dir, number) for number in numbers]
    return not any(
        launch and not launch.ended_ns and processes.ran_at(launch.pid, launch.started_ns) for launch in descriptions
    )


def _remove(instance_dir: str) -> None:
    """Remove the instance unless a daemon has taken its lock meanwhile."""
    locks = [daemons.PidFileLock(instance_dir, name) for name in (daemon_start.AGENT, daemon_start.COLLECTOR)]
    try:
        if all(lock.acquire() for lock in locks):
            shutil.rmtree(instance_dir, ignore_errors=True)
    finally:
        for lock in locks:
            lock.release()


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_folder(path: str) -> bool:
    """Whether ``path`` is a folder of this user and not a link."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()


def _is_recent(path: str) -> bool:
    """Whether the folder changed recently; a time in the future counts as recent."""
    try:
        return os.lstat(path).st_mtime > time.time() - RECENT_S
    except OSError:
        return True
