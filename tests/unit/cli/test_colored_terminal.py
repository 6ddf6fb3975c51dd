"""Screens on a terminal: colors, widths, and plain text where they are not wanted."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from fakes import ended_jobs
from fakes.many_executions import write_many_executions

SEQUENCE = re.compile("\x1b\\[[0-9;]*m")
LINES = [("op", "last"), ("scope", "last"), ("steps", "last"), ("host", "7f3a"), ("advise", "7f3a"), ("show", "7f3a")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = ended_jobs.write(tmp_path_factory.mktemp("colors") / "store")
    write_many_executions(store)
    return store


def screen(store: Path, width: int, *words: str, **environment: str) -> str:
    """Return what a command prints on a terminal of ``width`` columns."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    variables = {"PATH": "/usr/bin", "TERM": "xterm-256color", "TFPROF_STORE": str(store), **environment}
    command = [sys.executable, "-c", "from tfprof.cli.main import main; main()", *words]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=variables):
        os.close(child)
        output = b""
        while True:
            try:
                output += os.read(parent, 65536)
            except OSError:  # the terminal is closed
                break
    os.close(parent)
    return output.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(width: int, words: tuple[str, ...], store: Path) -> None:
    lines = SEQUENCE.sub("", screen(store, width, *words)).splitlines()
    assert lines
    assert [line for line in lines if len(line) > width] == []


def test_colors_are_only_on_terminals_that_want_them(store: Path) -> None:
    assert SEQUENCE.search(screen(store, 120, "op", "last"))
    assert "█" in screen(store, 120, "op", "last")
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = screen(store, 120, "op", "last", **environment)
        assert plain.startswith("op view of job")
        assert not re.search("[\x1b█]", plain)
