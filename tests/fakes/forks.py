"""Scripts that share one import of TensorFlow: each runs in a process forked after the import.

Use them for scripts whose result does not depend on how their process started.
"""

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import psutil

SERVER = Path(__file__).with_name("fork_server.py")
#: Process ids of the servers, which outlive single tests.
SERVER_PIDS: set[int] = set()


class ScriptResult(NamedTuple):
    """The result of a script; a negative ``status`` is the negated number of a signal."""

    pid: int
    status: int
    output: list[str]
    errors: str


class RunningScript:
    """A running script; ``output`` has its printed lines, except ``ready``."""

    def __init__(
        self,
        server: "subprocess.Popen[str]",
        script: Path,
        arguments: Sequence[object],
        request_fields: Mapping[str, Any],
    ) -> None:
        self.output: list[str] = []
        self._server = server
        with tempfile.NamedTemporaryFile(delete=False) as errors:
            self._errors = Path(errors.name)
        request = {"script": str(script), "arguments": list(map(str, arguments)), "errors": str(self._errors)}
        self._write(json.dumps({**request, **request_fields}))
        word, _, pid = self._line().partition(" ")
        assert word == "forked", word
        self.pid = int(pid)

    def until_ready(self) -> Self:
        """Wait for the script to print ``ready``."""
        while (line := self._line()) != "ready":
            assert not line.startswith("ended "), f"the script ended early: {self._errors.read_text()}"
            self.output.append(line)
        return self

    def go_on(self) -> None:
        """Let the script continue after ``ready``."""
        self._write("")

    def finish(self) -> ScriptResult:
        """Wait until the script ends; let it continue whenever it prints ``ready``."""
        while not (line := self._line()).startswith("ended "):
            if line == "ready":
                self.go_on()
            else:
                self.output.append(line)
        errors = self._errors.read_text(errors="replace")
        self._errors.unlink()
        return ScriptResult(self.pid, int(line.split()[1]), self.output, errors)

    def _write(self, line: str) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(line + "\n")
        self._server.stdin.flush()

    def _line(self) -> str:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, "the server has ended"
        return line.rstrip("\n")


class ForkServer:
    """A server process that has imported ``modules``; it ends with the context.

    ``command`` is the beginning of its command line: an interpreter, or a launcher and an
    interpreter.
    """

    def __init__(
        self, command: Sequence[object], environment: Mapping[str, str], modules: Sequence[str] = ("tensorflow",)
    ) -> None:
        with tempfile.NamedTemporaryFile(delete=False) as errors:
            self._errors = Path(errors.name)
            self._process = subprocess.Popen(
                [*map(str, command), "-W", "ignore", str(SERVER), *modules],
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __enter__(self) -> Self:
        SERVER_PIDS.add(self._process.pid)
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:  # a failed test has left a script running
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
            self._process.kill()
            self._process.communicate()
        SERVER_PIDS.discard(self._process.pid)
        self._errors.unlink()

    @property
    def import_errors(self) -> str:
        """What the imports have printed to standard error, once a script has started."""
        return self._errors.read_text(errors="replace")

    def start(
        self, script: str | Path, *arguments: object, folder: str | Path = "/", **environment: str
    ) -> RunningScript:
        """Start a script in ``folder``, with ``environment`` added.

        The script that was started before it must have ended.
        """
        return RunningScript(
            self._process, Path(script), arguments, {"folder": str(folder), "environment": environment}
        )

    def run(self, script: str | Path, *arguments: object, folder: str | Path = "/", **environment: str) -> ScriptResult:
        """Run a script to its end."""
        return self.start(script, *arguments, folder=folder, **environment).finish()

    def output(self, script: str | Path, *arguments: object, folder: str | Path = "/", **environment: str) -> list[str]:
        """Run a script that must exit with 0; return its printed lines."""
        result = self.run(script, *arguments, folder=folder, **environment)
        assert not result.status, f"{script} ended with {result.status}: {result.errors[-2000:]}"
        return result.output
