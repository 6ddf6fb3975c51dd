"""Records processes whose channel was gone before an agent could read all of it.

So every process of a launch is listed. If the launcher has left the last state of the channel, the
number of steps and the amount of lost data are known. Otherwise the process becomes a job of state
`lost`.
"""

import os
import time
from typing import Any, Final

from ...formats import given_up, runtime_dir
from ...formats.ids import hex_id
from .. import identity, launches
from ..announcements import AnnounceFolder, Announcement
from ..launches import Launch
from .announced_channels import CHANNEL_GONE

#: Maximum number of waiting files: a failing program may start processes without end. Further
#: processes are only counted, as refusals.
WAITING_MAX: Final = 1000


def record(instance_dir: str, announcement: Announcement, host: str) -> None:
    """Write a file about the process of ``announcement`` for the collector; OSError on failure.

    A process is left out if its launch is unknown, or if `WAITING_MAX` files wait already. The
    announcement is removed, but stays after a failure: the next agent tries again.
    """
    _write(instance_dir, announcement, host)
    AnnounceFolder(instance_dir).remove(announcement.pid, announcement.uid)


def _write(instance_dir: str, announcement: Announcement, host: str) -> None:
    launch = launches.read(instance_dir, announcement.launch) if announcement.launch else None
    if launch is None or len(_waiting_files(instance_dir)) >= WAITING_MAX:
        return
    fields = _identity(announcement, launch, host)
    left = launches.read_left(instance_dir, launch.launch, announcement.uid)
    now_ns = time.time_ns()
    if left is None:
        event = {"slug": CHANNEL_GONE.slug, "text": CHANNEL_GONE.args[0], "count": 1, "t_ns": now_ns}
        end = {**launches.end_of(None, announcement.pid, now_ns), "state": "lost"}
        given_up.write(instance_dir, announcement.uid, fields, end, event)
    else:
        fields = {**identity.accepted_hello(left.hello), **fields}
        end = {**left.counters, **launches.end_of(launch, announcement.pid, now_ns)}
        given_up.write(instance_dir, announcement.uid, fields, end)


def has_waiting_jobs(instance_dir: str) -> bool:
    """Return whether ended jobs wait for a collector, those of earlier agents included."""
    return bool(_waiting_files(instance_dir))


def _waiting_files(instance_dir: str) -> list[str]:
    try:
        names = os.listdir(os.path.join(instance_dir, runtime_dir.GIVEN_UP))
    except OSError:
        return []
    return [name for name in names if name.endswith(".json")]  # a process that was killed leaves a .tmp file


def _identity(announcement: Announcement, launch: Launch, host: str) -> dict[str, Any]:
    """Return what is known about the process without its channel."""
    fields: dict[str, Any] = {
        "uid": hex_id(announcement.uid),
        "pid": announcement.pid,
        "user": launch.user,
        "user_id": os.geteuid(),
        "host": host,
        "launch": hex_id(launch.launch),
        "tags": launch.tags or {},
        "created_real_ns": announcement.modified_ns,
    }
    optional_fields = {"name": launch.name, "command": launch.command}
    return fields | {key: value for key, value in optional_fields.items() if value is not None}
