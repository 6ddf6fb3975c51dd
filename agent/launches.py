"""The files that a `tfprof-run` and the agent tell each other things by: LAUNCH.json and LAUNCH.done."""

import os
from typing import Any, Final, NamedTuple

from tfprof.shim import places
from tfprof.shim.daemons import read_json, write_json

from . import processes

_DESCRIPTION: Final = ".json"
_RESULT: Final = ".done"
#: Both files of a launch that has ended are removed after this long.
KEPT_S: Final = 24 * 3600.0


class Launch(NamedTuple):
    """One `tfprof-run`: who started what for whom, and from `ended_ns` on how it ended.

    ``started`` tells the launcher's process from a later one with its pid. ``job_pid`` is the launcher's direct child, or the
    launcher itself, which has become the job; exactly one of ``status`` and ``signal`` is set once a child has ended.
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
    started: int = 0

    @property
    def has_become_job(self) -> bool:
        """Whether nobody is there besides the job, to say how that ended."""
        return self.job_pid == self.pid

    @property
    def is_alive(self) -> bool:
        """Whether the launcher, or what it has become, still runs."""
        return not self.ended_ns and processes.Process(self.pid, self.started).is_alive


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


def _path(place: str, launch: int, suffix: str) -> str:
    return os.path.join(place, places.LAUNCHES, name_of(launch) + suffix)


def write(place: str, launch: Launch) -> None:
    """Put the description of ``launch`` into the instance ``place``; OSError when that cannot be done."""
    write_json(_path(place, launch.launch, _DESCRIPTION), launch._asdict())


def read(place: str, launch: int) -> Launch | None:
    """Return the description of ``launch``, None when it is none of this instance."""
    found = read_json(_path(place, launch, _DESCRIPTION))
    try:
        return None if found is None else Launch(**found)
    except TypeError:
        return None


def write_result(place: str, result: Result) -> None:
    """Tell the launcher what became of its processes; OSError when that cannot be done."""
    write_json(_path(place, result.launch, _RESULT), result._asdict())


def read_result(place: str, launch: int) -> Result | None:
    """Return what the agent says about ``launch``, None when it has not said anything."""
    found = read_json(_path(place, launch, _RESULT))
    try:
        return None if found is None else Result(**found)
    except TypeError:
        return None


def listed(place: str) -> list[int]:
    """Return the launches that ``place`` has a description of."""
    names = os.listdir(os.path.join(place, places.LAUNCHES))
    return [int(name[:16], 16) for name in names if name[16:] == _DESCRIPTION and _is_hex(name[:16])]


def forget_old(place: str, now_s: float) -> None:
    """Remove the files of launches that nobody has written to for a day, and that run no more."""
    folder = os.path.join(place, places.LAUNCHES)
    for entry in os.scandir(folder):
        if entry.stat().st_mtime < now_s - KEPT_S and not _lives(place, entry.name):
            os.unlink(entry.path)


def _lives(place: str, file_name: str) -> bool:
    launch = read(place, int(file_name[:16], 16)) if _is_hex(file_name[:16]) else None
    return launch is not None and launch.is_alive


def _is_hex(text: str) -> bool:
    return len(text) == 16 and all(digit in "0123456789abcdef" for digit in text)
