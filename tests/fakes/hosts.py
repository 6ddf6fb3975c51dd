"""Two homes on this host that act as hosts: a head, and a node whose jobs go there."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakes import node_keys

BIN = Path(sys.executable).parent


class Host:
    """A home with its own settings, store and runtime folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self.environ = {
            **{name: text for name, text in os.environ.items() if not name.startswith("TFPROF_")},
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}}',
        }
        (folder / "run").mkdir(parents=True, mode=0o700)
        (folder / "config/tfprof").mkdir(parents=True)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            env=self.environ,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([str(BIN / command[0]), *command[1:]], env=self.environ, stderr=subprocess.DEVNULL)

    def order(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run a command that gives an order to one job; return its exit status and the answer."""
        completed = self.run("tfprof", *arguments, "--json")
        return completed.returncode, json.loads(completed.stdout)["jobs"][0]

    def jobs(self) -> list[dict[str, Any]]:
        jobs = self.run("tfprof", "jobs", "--json")
        return [] if jobs.returncode else list(json.loads(jobs.stdout)["jobs"])


def head_and_node(folder: Path) -> tuple[Host, Host, str]:
    """Return a head, a node with a key, and the address where the head is to listen."""
    head, url = Host(folder / "h"), f"tcp://127.0.0.1:{node_keys.free_port()}"
    assert "keys add" in head.run("tfprof", "keys", "init").stdout
    return head, add_node(head, folder / "n", "node1", url), url


@contextlib.contextmanager
def listening_head(folder: Path) -> Iterator[tuple[Host, Host, str]]:
    """Yield the same with a head that listens."""
    head, node, url = head_and_node(folder)
    service = head.start("tfprof", "serve", "--listen", url)
    yield head, node, url
    node.run("tfprof", "stop")
    service.send_signal(signal.SIGTERM)
    service.wait(30)


def add_node(head: Host, folder: Path, name: str, url: str) -> Host:
    """Return a node ``name`` with the home ``folder`` and a key of ``head``."""
    node = Host(folder)
    key = node.home / "config/tfprof/collector.key"
    assert str(key) in head.run("tfprof", "keys", "add", name, "-o", str(key)).stdout
    (node.home / "config/tfprof/config.toml").write_text(f'collector = "{url}"\n')
    return node
