"""A private runtime folder, store, agent and collector, and queries to the store."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fakes import command
from fakes.forks import ForkServer

#: Maximum seconds until the store has the end of a job that has ended.
JOB_END_S: Final = 30.0
_MODULE: Final = "tfprof.cli.main"


class Instance:
    """The environment to start jobs with, and queries about them."""

    def __init__(self, environment: dict[str, str], servers: contextlib.ExitStack) -> None:
        """Take the ``environment``, and a stack that ends the fork servers."""
        self.environment = environment
        self.store = environment["TFPROF_STORE"]
        self._servers = servers
        self._server_of_python: dict[Path, ForkServer] = {}

    def fork_server(self, python: Path) -> ForkServer:
        """Return the server that forks the bare jobs of an interpreter; it starts once."""
        if python not in self._server_of_python:
            server = ForkServer([python], self.environment)
            self._server_of_python[python] = self._servers.enter_context(server)
        return self._server_of_python[python]

    def ask(self, *words: str) -> Any:
        """Return the JSON that a command prints; None if it fails, as for an unknown job."""
        status, out, _ = command.answer(*words, "--store", self.store, "--json")
        return None if status else json.loads(out)

    def jobs(self, name: str) -> list[Any]:
        """Return the jobs of a name as soon as all have ended, or after JOB_END_S."""
        end = time.monotonic() + JOB_END_S
        while True:
            jobs = [job for job in self.ask("jobs")["jobs"] if job["name"] == name]
            if all(job["state"] != "running" for job in jobs) or time.monotonic() > end:
                return jobs
            time.sleep(0.1)


@contextlib.contextmanager
def instance() -> Iterator[Instance]:
    """Start an agent and a collector in a temporary folder; stop and remove all at the end."""
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        os.chmod(folder, 0o700)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TFPROF_", "PYTHON"))}
        environment |= {"XDG_RUNTIME_DIR": folder, "TFPROF_STORE": f"{folder}/store", "TF_CPP_MIN_LOG_LEVEL": "3"}
        _command("start", environment)
        try:
            with contextlib.ExitStack() as servers:
                yield Instance(environment, servers)
        finally:
            _command("stop", environment)


def _command(word: str, environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", _MODULE, word], check=True, capture_output=True, timeout=150, env=environment)
