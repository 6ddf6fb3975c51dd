"""The files that a `tfprof-run` and the agent tell each other things by: LAUNCH.json and LAUNCH.done."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..formats import runtime_dir
from ..formats.private_files import read_json, write_json

_DESCRIPTION: Final = ".json"
_RESULT: Final = ".done"
#: Both files of a launch that has ended are removed after this long.
RETENTION_S: Final = 24 * 3600.0


class Launch(NamedTuple):
    """One `tfprof-run`: who started what for whom, and from `ended_ns` on how it ended.

    ``job_pid`` is the launcher's direct child, or the launcher itself, which has become the job; exactly one of ``status`` and ``signal`` is set once a child has ended.
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
        """Whether nobody is there besides the job, to say how that ended."""
        return self.job_pid == self.pid


#: What kind of value each field of a description has.
_KINDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("launch", "pid", "started_ns", "job_pid", "ended_ns"), int),
    **dict.fromkeys(("store", "host", "user"), str),
    **dict.fromkeys(("status", "signal"), int | None),
    "name": str | None,
    "command": list | None,
    "tags": dict | None,
}


class Dump(NamedTuple):
    """Profiles that are to be written at the end of a launch: of what was traced up to each of ``steps``, into ``folder``."""

    steps: list[int]
    folder: str


class Result(NamedTuple):
    """What became of a launch's processes, as the agent sees it.

    ``complete`` once nothing is left to store of those that ended; ``progress`` grows with every answer of the
    collector; ``stall`` says why it does not. Each of ``jobs`` has uid, pid, state and the words of its channel.
    """

    launch: int
    complete: bool
    progress: int
    jobs: list[dict[str, Any]]
    refused: list[dict[str, str]]
    stall: dict[str, str] | None = None


def name_of(launch: int) -> str:
    """Return the 16 hexadecimal digits that ``launch`` goes by."""
    return f"{launch:016x}"


def _path(instance_dir: str, launch: int, suffix: str) -> str:
    return os.path.join(instance_dir, runtime_dir.LAUNCHES, name_of(launch) + suffix)


def write(instance_dir: str, launch: Launch) -> None:
    """Put the description of ``launch`` into the instance ``instance_dir``; OSError when that cannot be done."""
    write_json(_path(instance_dir, launch.launch, _DESCRIPTION), launch._asdict())


def read(instance_dir: str, launch: int) -> Launch | None:
    """Return the description of ``launch``, None when it is none of this instance."""
    found = read_json(_path(instance_dir, launch, _DESCRIPTION))
    if found is None or found.get("launch") != launch or not _is_sound(found):
        return None
    try:
        return Launch(**found)
    except TypeError:
        return None


def _is_sound(found: dict[str, Any]) -> bool:
    """Whether every field is of its kind: a file may hold anything."""
    if not all(isinstance(value, _KINDS.get(name, object)) for name, value in found.items()):
        return False
    texts = [*(found.get("command") or ()), *(found.get("tags") or {}).values()]
    return all(isinstance(text, str) for text in texts)


def write_result(instance_dir: str, result: Result) -> None:
    """Tell the launcher what became of its processes; OSError when that cannot be done."""
    write_json(_path(instance_dir, result.launch, _RESULT), result._asdict())


def read_result(instance_dir: str, launch: int) -> Result | None:
    """Return what the agent says about ``launch``, None when it has not said anything."""
    found = read_json(_path(instance_dir, launch, _RESULT))
    try:
        return None if found is None else Result(**found)
    except TypeError:
        return None


def listed(instance_dir: str) -> list[int]:
    """Return the launches that ``instance_dir`` has a description of."""
    names = os.listdir(os.path.join(instance_dir, runtime_dir.LAUNCHES))
    return [int(name[:16], 16) for name in names if name[16:] == _DESCRIPTION and _is_hex(name[:16])]


def forget_old(instance_dir: str, now_s: float, living: set[int]) -> None:
    """Remove the files of launches that nobody has written to for a day, but not of those ``living``."""
    names = {name_of(launch) for launch in living}
    with os.scandir(os.path.join(instance_dir, runtime_dir.LAUNCHES)) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # a folder: none of ours, and in nobody's way
                if entry.name[:16] not in names and entry.stat(follow_symlinks=False).st_mtime < now_s - RETENTION_S:
                    os.unlink(entry.path)


def _is_hex(text: str) -> bool:
    return len(text) == 16 and all(digit in "0123456789abcdef" for digit in text)
