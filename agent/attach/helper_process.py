"""The short-lived process that attaches to a job or detaches from it, and its answer."""

import contextlib
import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final

from ...commands import daemons

_HELPER: Final = "tfprof.agent.attach.__main__"
#: Time limit for the end of the helper after SIGTERM (seconds), longer than the helper waits for
#: the end of work that has begun.
_END_S: Final = 10.0


class HelperProcess:
    """A helper that executes ``request`` (`__main__.answer`); OSError if it cannot be started."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            daemons.isolated_command(_HELPER, []),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only this process, which then sends SIGTERM to the helper
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as file:
            json.dump(request, file)

    def answer(self, timeout_s: float) -> dict[str, Any] | None:
        """Wait for the answer, at most ``timeout_s``; None if the helper still runs."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with self._process.stdout as output, self._process.stderr as errors:
            try:
                answer: dict[str, Any] = json.load(output)
            except ValueError:
                last_line = errors.read().splitlines()[-1:] or [f"it ended with status {status} and no answer"]
                return failure(last_line[0])
        return answer

    def withdraw(self) -> None:
        """Let the helper withdraw its request and end."""
        self._process.terminate()

    def end(self) -> None:
        """End the helper if it still runs."""
        self.withdraw()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()


def disarming_request(pid: int, started: int, launch: int) -> dict[str, Any]:
    """Return the request to disarm a process if ``launch`` armed it."""
    return {"action": "disarm", "pid": pid, "started": started, "launch": launch}


def failure(reason: str) -> dict[str, Any]:
    """Return the answer of a helper that failed."""
    return {"slug": "attach-failed", "text": f"the attaching process failed: {reason}"}
