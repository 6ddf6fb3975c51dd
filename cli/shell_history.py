"""The shell's history of lines, in a private file of the user."""

import os
from pathlib import Path
from typing import Final

from ..commands.streams import note
from ..formats import runtime_dir

#: Maximum number of lines in the file.
LINES_MAX: Final = 1000


def history_file() -> Path:
    """Return the file of the history: `shell_history` in $XDG_STATE_HOME/tfprof."""
    return Path(runtime_dir.require_absolute(runtime_dir.state_home())) / "tfprof" / "shell_history"


class LineHistory:
    """The lines in the file and those of this session, the latest last.

    An unusable file is reported once.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.texts: list[str] = []
        if path is not None:
            try:
                self.texts = path.read_text("utf-8", "replace").splitlines()[-LINES_MAX:]
            except FileNotFoundError:
                pass
            except OSError as error:
                self._give_up(path, error)

    def add(self, text: str) -> None:
        """Add a line, unless it equals the last one."""
        if self.texts[-1:] == [text]:
            return
        self.texts.append(text)
        if self._path is not None:
            try:
                self._append(self._path, text)
            except OSError as error:
                self._give_up(self._path, error)

    def _append(self, path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if len(self.texts) > LINES_MAX:
            self.texts = self.texts[-LINES_MAX // 2 :]
            path.unlink(missing_ok=True)
            text = "\n".join(self.texts)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            os.fchmod(descriptor, 0o600)
            file.write(f"{text}\n".encode("utf-8", "replace"))

    def _give_up(self, path: Path, error: OSError) -> None:
        note(f"lines are not saved for later shells: {path}: {error.strerror}")
        self._path = None
