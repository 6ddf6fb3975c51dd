"""The files by which launchers and the agent communicate.

LAUNCH.json is the launcher's description of the launch. LAUNCH.done is the agent's result.
LAUNCH-UID.left is the last state of a channel that the launcher closed before all its data was
stored. A launcher is `tfprof-run`, or `tfprof attach` for each process.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..formats import runtime_dir
from ..formats.ids import hex_id
from ..formats.private_files import read_json, write_json
from . import identity

#: The tag of the jobs of a series of runs; its value is the id of the series, with `:SIDE` if there
#: are two sides.
SERIES_TAG: Final = "repeat"
_DESCRIPTION_SUFFIX: Final = ".json"
_RESULT_SUFFIX: Final = ".done"
_LEFT_SUFFIX: Final = "-%s.left"
#: Age at which both files of an ended launch are removed (seconds).
RETENTION_S: Final = 24 * 3600.0


class Launch(NamedTuple):
    """One run of `tfprof-run`, or one attachment: its command, its owner, and its end.

    ``launch`` is its id. ``pid`` is the launcher. ``job_pid`` is its child, the launcher itself
    after --exec, or 0 for an attachment. Exactly one of ``status`` and ``signal`` is set once a
    child has ended.
    """

    launch: int
    pid: int
    started_ns: int
    store: str
    host: str
    user: str
    name: str | None = None
    command: list[str] | None = None
    tags: dict[str, str] | None = None
    job_pid: int = 0
    ended_ns: int = 0
    status: int | None = None
    signal: int | None = None

    @property
    def has_become_job(self) -> bool:
        """Whether the launcher became the job, so that no process reports its exit status."""
        return self.job_pid == self.pid


#: Type of each field of a description.
_DESCRIPTION_TYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("launch", "pid", "started_ns", "job_pid", "ended_ns"), int),
    **dict.fromkeys(("store", "host", "user"), str),
    **dict.fromkeys(("status", "signal"), int | None),
    "name": str | None,
    "command": list | None,
    "tags": dict | None,
}


#: Type of each field that is read from a result, from a job in it, and from a reason.
_RESULT_TYPES: Final[Mapping[str, type]] = {"complete": bool, "progress": int, "jobs": list, "refused": list}
_JOB_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("uid", "state"), str),
    **dict.fromkeys(("records", "acked", "dropped_traces", "dropped_spans"), int),
}
_REASON_TYPES: Final[Mapping[str, type]] = {"slug": str, "text": str}


class LeftChannel(NamedTuple):
    """Hello and counters of a channel ``uid`` whose process has ended, read by the launcher."""

    uid: int
    hello: dict[str, Any]
    counters: dict[str, Any]


class DumpRequest(NamedTuple):
    """A request to write profiles into ``folder`` at the end of a launch.

    There is one profile for each of ``steps``, with all steps that were traced up to it.
    """

    steps: list[int]
    folder: str


class Result(NamedTuple):
    """The agent's report about the processes of the launch with the id ``launch``.

    ``complete`` is set once all data of ended processes is stored. ``progress`` grows as the
    collector acknowledges data. ``stall`` is the reason why nothing is stored. Each of ``jobs`` has
    uid, pid, state and counters. Each of ``refused`` has slug and text, and since 0.3.0 the pid and
    the number of refusals (`times`).
    """

    launch: int
    complete: bool
    progress: int
    jobs: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    stall: dict[str, str] | None = None


def new(store: str, name: str | None, command: list[str] | None, tagged_pid: int) -> Launch:
    """Return a launch that this process begins now; its tags are those of ``tagged_pid``."""
    return Launch(
        launch=int.from_bytes(os.urandom(8), "little") or 1,
        pid=os.getpid(),
        started_ns=time.time_ns(),
        store=store,
        host=os.uname().nodename,
        user=identity.user_name(os.geteuid()),
        name=name,
        command=None if command is None else identity.command_line(command),
        tags=identity.process_tags(tagged_pid),
    )


def end_of(launch: Launch | None, pid: int, t_ns: int) -> dict[str, Any]:
    """Return state, status, signal and end time of process ``pid``, which was gone at ``t_ns``.

    The launcher reports them for its child only. Times are real ns.
    """
    if launch is None or launch.job_pid != pid or not launch.ended_ns:
        return {"state": "ended", "status": None, "signal": None, "t_ns": t_ns}
    state = "exited" if launch.signal is None else "killed"
    return {"state": state, "status": launch.status, "signal": launch.signal, "t_ns": launch.ended_ns}


def run_of(instance_dir: str, launch: Launch) -> str:
    """Return the value of TFPROF_RUN in the jobs of ``launch``."""
    return f"{hex_id(launch.launch)}@{instance_dir}"


def _path(instance_dir: str, launch: int, suffix: str) -> str:
    return os.path.join(instance_dir, runtime_dir.LAUNCHES, hex_id(launch) + suffix)


def write(instance_dir: str, launch: Launch) -> None:
    """Write the description of ``launch`` into the instance; OSError when that fails."""
    write_json(_path(instance_dir, launch.launch, _DESCRIPTION_SUFFIX), launch._asdict())


def read(instance_dir: str, launch: int) -> Launch | None:
    """Return the description of ``launch``, None when the instance has no valid one."""
    fields = read_json(_path(instance_dir, launch, _DESCRIPTION_SUFFIX))
    if fields is None or fields.get("launch") != launch or not _is_sound(fields):
        return None
    try:
        return Launch(**fields)
    except TypeError:
        return None


def _is_sound(fields: dict[str, Any]) -> bool:
    """Whether every field has the right type."""
    if not all(isinstance(value, _DESCRIPTION_TYPES.get(name, object)) for name, value in fields.items()):
        return False
    texts = [*(fields.get("command") or ()), *(fields.get("tags") or {}).values()]
    return all(isinstance(text, str) for text in texts)


def write_result(instance_dir: str, result: Result) -> None:
    """Write the result of a launch for its launcher; OSError when that fails."""
    write_json(_path(instance_dir, result.launch, _RESULT_SUFFIX), result._asdict())


def read_result(instance_dir: str, launch: int) -> Result | None:
    """Return the result of ``launch``, None when the instance has no valid one."""
    fields = read_json(_path(instance_dir, launch, _RESULT_SUFFIX))
    if fields is None or not _is_sound_result(fields):
        return None
    try:
        return Result(**fields)
    except TypeError:
        return None


def _is_sound_result(fields: dict[str, Any]) -> bool:
    """Whether every field that is read has the right type: another release may have written it."""
    if not _has_fields(fields, _RESULT_TYPES):
        return False
    reasons = [*fields["refused"], *([] if fields.get("stall") is None else [fields["stall"]])]
    return all(_has_fields(job, _JOB_TYPES) for job in fields["jobs"]) and all(
        _has_fields(reason, _REASON_TYPES) for reason in reasons
    )


def _has_fields(value: object, types: Mapping[str, type]) -> bool:
    """Whether ``value`` is a dict with these keys, and values of these types."""
    return isinstance(value, dict) and all(
        isinstance(value.get(name), field_type) for name, field_type in types.items()
    )


def write_left(instance_dir: str, launch: int, channel: LeftChannel) -> None:
    """Write the last state of a channel of ``launch`` for the agent; OSError when that fails."""
    write_json(_path(instance_dir, launch, _LEFT_SUFFIX % hex_id(channel.uid)), channel._asdict())


def read_left(instance_dir: str, launch: int, uid: int) -> LeftChannel | None:
    """Return the last state of channel ``uid`` of ``launch``; None without a valid one."""
    fields = read_json(_path(instance_dir, launch, _LEFT_SUFFIX % hex_id(uid))) or {}
    hello, counters = fields.get("hello"), fields.get("counters")
    return LeftChannel(uid, hello, counters) if isinstance(hello, dict) and isinstance(counters, dict) else None


def list_launches(instance_dir: str) -> list[int]:
    """Return the ids of the launches that have a description in the instance."""
    names = os.listdir(os.path.join(instance_dir, runtime_dir.LAUNCHES))
    return [int(name[:16], 16) for name in names if name[16:] == _DESCRIPTION_SUFFIX and _is_hex(name[:16])]


def remove_old_files(instance_dir: str, now_s: float, used_launches: set[int]) -> None:
    """Remove files that are older than a day, except those of ``used_launches``."""
    used_names = {hex_id(launch) for launch in used_launches}
    with os.scandir(os.path.join(instance_dir, runtime_dir.LAUNCHES)) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # a folder cannot be removed: it is not ours, and harmless
                if (
                    entry.name[:16] not in used_names
                    and entry.stat(follow_symlinks=False).st_mtime < now_s - RETENTION_S
                ):
                    os.unlink(entry.path)


def _is_hex(text: str) -> bool:
    return len(text) == 16 and all(digit in "0123456789abcdef" for digit in text)


def launch_of(pid: int) -> int:
    """Return the launch that started process ``pid``, 0 when it is unknown."""
    launch, _, _ = identity.environment_of(pid).get("TFPROF_RUN", "").partition("@")
    try:
        return int(launch, 16)
    except ValueError:
        return 0
