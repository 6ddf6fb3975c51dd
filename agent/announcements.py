"""The folder in which new channels are announced: one file PID-UID a channel (docs/channel.md)."""

import contextlib
import os
import re
import time
from typing import Final, NamedTuple

from tfprof.shim import places

_NAME: Final = re.compile(r"(\d{1,9})-([0-9a-f]{16})")
_TEXT_MAX: Final = 1024
#: A folder changed this recently may change again without a new time stamp.
_COARSE_S: Final = 0.1


class Announcement(NamedTuple):
    """One file of the folder: the process as it sees itself, its uid, `channel` or `refused SLUG text`, and when (real ns)."""

    pid: int
    uid: int
    text: str
    made_ns: int

    @property
    def refusal(self) -> dict[str, str] | None:
        """Why there is no channel, as slug and text; None where there is one."""
        word, _, rest = self.text.partition(" ")
        if word != "refused":
            return None
        slug, _, text = rest.partition(" ")
        return {"slug": slug, "text": text}


class AnnounceFolder:
    """The announcements of the instance ``place``, each told once to whoever holds this object."""

    def __init__(self, place: str) -> None:
        self._folder = os.path.join(place, places.ANNOUNCE)
        self._seen: set[str] = set()
        self._changed_ns = -1

    def news(self) -> list[Announcement]:
        """Return what was announced since the last call; an unchanged folder costs one stat."""
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns
            if changed_ns == self._changed_ns:
                return []
            names = set(os.listdir(self._folder))
        except OSError:
            return []
        found = [one for one in map(self._read, sorted(names - self._seen)) if one is not None]
        self._seen = (self._seen & names) | {_file_name(one) for one in found}
        settled = changed_ns < time.time_ns() - _COARSE_S * 1e9 and len(self._seen) == len(names)
        self._changed_ns = changed_ns if settled else -1
        return found

    def _read(self, name: str) -> Announcement | None:
        """Return the announcement in the file ``name``, None when it is none or not written to its end yet."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        try:
            with open(os.path.join(self._folder, name), encoding="utf-8", errors="replace") as file:
                text = file.read(_TEXT_MAX)
                made_ns = os.fstat(file.fileno()).st_mtime_ns
        except OSError:
            return None
        if not text.endswith("\n"):
            return None
        return Announcement(int(match[1]), int(match[2], 16), text.strip(), made_ns)

    def remove(self, announcement: Announcement) -> None:
        """Remove what has been dealt with."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, _file_name(announcement)))


def _file_name(announcement: Announcement) -> str:
    return f"{announcement.pid}-{announcement.uid:016x}"
