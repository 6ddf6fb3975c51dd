"""The folder in which new channels are announced: one file PID-UID per channel.

The format is described in docs/channel.md.
"""

import contextlib
import itertools
import os
import re
import time
from typing import Final, NamedTuple

from ..formats import runtime_dir
from ..formats.ids import hex_id
from ..formats.private_files import read_file

_NAME: Final = re.compile(r"(\d{1,9})-([0-9a-f]{16})")
_LAUNCH: Final = re.compile(r"[0-9a-f]{16}")
_TEXT_MAX: Final = 1024
#: The time stamp of a file may lag behind the clock by this much (ns). A folder that changed more
#: recently may change again and keep its time stamp.
TIMESTAMP_LAG_NS: Final = 100_000_000
#: Maximum files listed at a time (scans find the other channels), and maximum announcements
#: returned at a time (the next call returns the others).
FILES_MAX: Final = 10_000
ANNOUNCEMENTS_MAX: Final = 250
#: Attempts to read an incomplete file.
TRIES: Final = 20


class Announcement(NamedTuple):
    """One announcement file.

    `pid` is the process's id in its own pid namespace, or in that of the `tfprof attach` that wrote
    the file. `text` is `channel` or `refused SLUG text`.
    `launch` is 0 if the file names no launch: the shim of tfprof 0.2.0 and the command
    `tfprof attach` write such files.
    `modified_ns` is the file's time stamp (real ns).
    """

    pid: int
    uid: int
    text: str
    launch: int
    modified_ns: int

    @property
    def refusal(self) -> dict[str, str] | None:
        """The reason why there is no channel, as slug and text; None if there is a channel."""
        word, _, reason = self.text.partition(" ")
        if word != "refused":
            return None
        slug, _, text = reason.partition(" ")
        return {"slug": slug, "text": text}


class AnnounceFolder:
    """The announcements of one instance. An object of this class returns each of them once."""

    def __init__(self, instance_dir: str) -> None:
        self._folder = os.path.join(instance_dir, runtime_dir.ANNOUNCE)
        self._seen: set[str] = set()
        self._tries: dict[str, int] = {}
        self._changed_ns = -1

    def take_new(self) -> list[Announcement]:
        """Return new announcements, limited in number; an unchanged folder costs one stat."""
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns
            if changed_ns == self._changed_ns:
                return []
            with os.scandir(self._folder) as entries:
                names = {entry.name for entry in itertools.islice(entries, FILES_MAX)}
        except OSError:
            return []
        if len(names) < FILES_MAX:  # a truncated list may lack files that an earlier list had
            self._seen &= names
        self._tries = {name: tries for name, tries in self._tries.items() if name in names}
        announcements = [
            announcement
            for name in sorted(names - self._seen)[:ANNOUNCEMENTS_MAX]
            if (announcement := self._read_new(name)) is not None
        ]
        # A time stamp in the future, as after a change of the clock, also counts as old.
        is_settled = abs(time.time_ns() - changed_ns) > TIMESTAMP_LAG_NS and names <= self._seen
        self._changed_ns = changed_ns if is_settled else -1
        return announcements

    def _read_new(self, name: str) -> Announcement | None:
        """Return the announcement in the file ``name``, None when it is invalid or incomplete."""
        announcement = self._read(name)
        tries = self._tries.pop(name, 0) + 1
        if announcement is not None or tries == TRIES or _NAME.fullmatch(name) is None:
            self._seen.add(name)
        else:
            self._tries[name] = tries
        return announcement

    def _read(self, name: str) -> Announcement | None:
        match = _NAME.fullmatch(name)
        path = os.path.join(self._folder, name)
        data = read_file(path, _TEXT_MAX) if match else None
        if match is None or data is None or not data.endswith(b"\n"):
            return None
        with contextlib.suppress(OSError):
            text, launch = _content(data.decode(errors="replace"))
            return Announcement(int(match[1]), int(match[2], 16), text, launch, os.lstat(path).st_mtime_ns)
        return None

    def has(self, pid: int, uid: int) -> bool:
        """Return whether there is an announcement of channel ``uid`` by process ``pid``."""
        return os.path.lexists(self._path(pid, uid))

    def remove(self, pid: int, uid: int) -> None:
        """Remove the announcement of channel ``uid`` by process ``pid``, if there is one."""
        with contextlib.suppress(OSError):
            os.unlink(self._path(pid, uid))

    def _path(self, pid: int, uid: int) -> str:
        return os.path.join(self._folder, f"{pid}-{hex_id(uid)}")


def _content(text: str) -> tuple[str, int]:
    """Return the printable text of a file, and the launch in its last line, 0 without one."""
    body, _, last_line = text.rstrip("\n").rpartition("\n")
    launch = int(last_line, 16) if _LAUNCH.fullmatch(last_line) else 0
    content = body if launch else text
    return "".join(character if character.isprintable() else " " for character in content).strip(), launch
