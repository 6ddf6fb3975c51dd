"""A work area that is a file, and the script that a job runs, in a private folder."""

import contextlib
import os
import secrets
import time
from typing import Final

from ...formats import runtime_dir
from ..processes import status_of
from .memory import FileMemory
from .work_area import WorkArea, wait_while_mapped

#: Name of the folder with the files, in the user's runtime folder.
FOLDER: Final = "attach"
#: Age at which files that an earlier process left behind are removed (seconds).
_RETENTION_S: Final = 600.0
#: Minimum number of free descriptors: the interpreter opens the script, and the script opens the
#: work area.
_FREE_DESCRIPTORS: Final = 4


class WorkAreaFile(FileMemory):
    """The work area and the script of one injection, in files; `remove` removes both.

    OSError or FolderError if they cannot be written.
    """

    def __init__(self, area: WorkArea) -> None:
        runtime_dir.make_private(runtime_dir.runtime_root())
        folder = runtime_dir.make_private(os.path.join(runtime_dir.runtime_root(), FOLDER))
        _remove_old_files(folder)
        base = os.path.join(folder, secrets.token_hex(8))
        self._path, self.script = f"{base}.area", f"{base}.py"
        super().__init__(_create(self._path), "the work area")
        try:
            os.truncate(self._fd, area.size)
            with os.fdopen(_create(self.script), "wb") as script:
                script.write(area.place_in_file(self, self._path))
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Close and remove the files."""
        self.close()
        for path in (self._path, self.script):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def wait_until_freed(self, pid: int) -> None:
        """Wait until process ``pid`` has unmapped the work area.

        `WorkArea.wait_until_freed` waits for the same in memory.
        """
        wait_while_mapped(lambda: self._is_mapped_by(pid))

    def is_readable_by(self, pid: int) -> bool:
        """Return whether process ``pid`` can open the files, by the same paths."""
        try:
            return _has_same_rights(pid) and _has_free_descriptors(pid) and self._is_seen_by(pid)
        except (OSError, ValueError, KeyError):
            return False

    def _is_mapped_by(self, pid: int) -> bool:
        with open(f"/proc/{pid}/maps", "rb") as maps:
            return os.fsencode(os.path.basename(self._path)) in maps.read()

    def _is_seen_by(self, pid: int) -> bool:
        return all(os.path.samefile(f"/proc/{pid}/root{path}", path) for path in (self._path, self.script))


def _create(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _remove_old_files(folder: str) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > _RETENTION_S:
                os.unlink(entry.path)


def _has_same_rights(pid: int) -> bool:
    """Return whether the process has the user and the seccomp mode of this process."""
    status, own_status = status_of(pid), status_of(os.getpid())
    return status["Uid"].split() == [str(os.geteuid())] * 4 and status.get("Seccomp") == own_status.get("Seccomp")


def _has_free_descriptors(pid: int) -> bool:
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("Max open files"))
    soft_limit = line.split()[3]
    return soft_limit == "unlimited" or len(os.listdir(f"/proc/{pid}/fd")) + _FREE_DESCRIPTORS <= int(soft_limit)
