"""Keeps a copy of the store in another one while the collector runs (the setting `copy-to`)."""

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from ..commands.daemons import isolated_command
from ..commands.streams import WARNING, log

_MODULE: Final = "tfprof.collector.copy_rounds"
#: Seconds until a process that has ended is replaced.
RETRY_S: Final = 30.0
#: Time limit for the end of the process (seconds).
_END_S: Final = 1.0
_PROGRESS_MAX: Final = 1 << 16


class Copier:
    """The process that copies the folder ``store`` to ``url``; no process if ``url`` is empty.

    `progress`: what it said last, see `copy_rounds.CopyRounds.run`.
    """

    def __init__(self, store: Path, url: str) -> None:
        self._store, self._url = store, url
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        self._pending = b""
        self._progress: dict[str, Any] = {"copied_ns": None, "rows": 0, "failed": 0, "error": None}

    @property
    def progress(self) -> dict[str, Any] | None:
        """The target and the progress of the copy, None without a target."""
        return {"to": self._url, **self._progress} if self._url else None

    def tick(self, now: float) -> None:
        """Start the process if it does not run, and read what it says.

        ``now``: the monotonic clock in seconds.
        """
        if self._process is None and self._url and now >= self._not_before:
            self._not_before = now + RETRY_S
            self._start()
        if self._process is not None:
            self._read(self._process)
            if self._process.poll() is not None:
                text = f"the copying process has ended with status {self._process.returncode}, and is started again"
                self._take({**self._progress, "error": {"slug": "copy-ended", "text": text}})
                self.close()
                self._not_before = now + RETRY_S

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):  # it is in a system call that does not return
                self._process.wait(_END_S)
            self._process = None

    def _start(self) -> None:
        command = isolated_command(_MODULE, [str(self._store), self._url])
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._pending = b""

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        try:
            self._pending += os.read(process.stdout.fileno(), _PROGRESS_MAX)
        except BlockingIOError:
            return
        *lines, self._pending = self._pending.split(b"\n")
        if lines:
            self._take(json.loads(lines[-1]))

    def _take(self, progress: dict[str, Any]) -> None:
        """Keep ``progress``, and log an error when it comes, and its end."""
        before, error = self._progress["error"], progress["error"]
        self._progress = progress
        if error != before:
            if error is None:
                log(f"tfprof: copies to {self._url} again")
            else:
                log(f"tfprof: copy to {self._url}: {error['text']} [{error['slug']}]", level=WARNING)
