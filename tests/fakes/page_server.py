"""`tfprof web`, or another command that serves, as a process, and requests to it."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fakes.forks import SERVER_PIDS


class Answer(NamedTuple):
    """An answer to a request."""

    status: int
    headers: dict[str, str]
    body: bytes


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self._path)


class PageServer:
    """A running server; `lines` are those that it has printed."""

    def __init__(self, process: "subprocess.Popen[str]", lines: list[str]) -> None:
        self.process = process
        self.lines = lines
        text = "\n".join(lines)
        self.socket = next(iter(re.findall(r"(?:-L \d+:|--unix-socket )(/\S+)", text)), "")
        self.link = next(iter(re.findall(r"http://127\.0\.0\.1:\S+", text)), "")
        self.port = int(re.findall(r"127\.0\.0\.1:(\d+)", self.link)[0]) if self.link else 0

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection to the server."""
        return (
            _UnixConnection(self.socket)
            if self.socket
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        )

    def ask(self, target: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        """Send a request; underscores in the names of ``headers`` are dashes."""
        connection = self.connection()
        try:
            connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def send(self, data: bytes) -> bytes:
        """Send bytes that need not be a request; return all that is answered."""
        connection = self.connection()
        connection.connect()
        with connection.sock as stream:
            stream.settimeout(30)
            answer = b""
            try:
                stream.sendall(data)
                stream.shutdown(socket.SHUT_WR)
                while part := stream.recv(65536):
                    answer += part
            except (ConnectionResetError, BrokenPipeError):
                pass
            return answer


@contextmanager
def page_server(store: Path, runtime: Path, *options: str, command: str = "web") -> Iterator[PageServer]:
    """Serve ``store`` by ``command``, with ``runtime`` as the runtime folder."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "TFPROF_STORE": str(store)}
    words = [sys.executable, "-m", "tfprof.cli.main", command, *options]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        SERVER_PIDS.add(process.pid)
        try:
            yield PageServer(process, _lines(process))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
            SERVER_PIDS.discard(process.pid)


def _lines(process: "subprocess.Popen[str]") -> list[str]:
    """Return the lines that the server prints when it is ready."""
    lines: list[str] = []
    while "Ctrl-C ends it." not in lines:
        line = process.stdout.readline()
        assert line, lines
        lines.append(line.rstrip("\n"))
    return lines
