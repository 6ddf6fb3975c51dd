"""The shell as a process: on a terminal, with pipes, and about a job that is still running.

Tests cli/shell_terminal.py.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes import small_store
from fakes.made_store import HOST, IDENTITY, trace_tables
from fakes.run_metadata import run_metadata
from tfprof.collector.store.writer import LocalStoreWriter

SHELL = [sys.executable, "-m", "tfprof.cli.main", "shell"]
#: A terminal's answer to the query for the position of the cursor.
CURSOR_POSITION = b"\x1b[1;1R"
#: Beginning of a prompt: the code that turns bracketed paste on.
PROMPT_BEGIN = b"\x1b[?2004h"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_store.write(tmp_path_factory.mktemp("shell") / "store")


class Terminal:
    """A shell on a terminal of 24 lines of 100 characters."""

    def __init__(self, *words: str, state: Path) -> None:
        self._output = b""
        self.pid, self._fd = pty.fork()
        if self.pid:
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
        else:
            os.environ |= {"XDG_STATE_HOME": str(state), "TERM": "xterm", "LINES": "24", "COLUMNS": "100"}
            os.execv(SHELL[0], [*SHELL, *words])

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def until(self, pattern: str) -> str:
        """Wait until ``pattern`` is shown; return the output until then, without control codes."""
        return self._wait(lambda shown: bool(re.search(pattern, shown)))

    def await_prompt(self) -> str:
        """Wait for the next prompt; return the output until then."""
        return self._wait(
            lambda shown: (
                "tfprof>" in self._output.rpartition(PROMPT_BEGIN)[2].decode() and PROMPT_BEGIN in self._output
            )
        )

    def _wait(self, condition: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + 60
        shown = ""
        while time.monotonic() < deadline:
            shown = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", self._output).decode("utf-8", "replace")
            if condition(shown):
                self._output = b""
                return shown
            if select.select([self._fd], [], [], 0.1)[0]:
                self._read()
        raise AssertionError(f"waited in vain; the terminal shows {shown!r}")

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # the shell has ended
            data = b""
        if b"\x1b[6n" in data:
            os.write(self._fd, CURSOR_POSITION)
        self._output += data

    def wait_end(self) -> int:
        """Wait until the shell ends; return its exit status, or -1 after a minute."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([self._fd], [], [], 0.1)[0]:
                self._read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        return -1

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)


@pytest.fixture
def terminal(store: Path, tmp_path: Path) -> Iterator[Terminal]:
    new_terminal = Terminal("aa10", "--store", str(store), state=tmp_path)
    yield new_terminal
    new_terminal.close()


def test_typed_lines_are_completed_answered_and_kept_in_the_history(terminal: Terminal, tmp_path: Path) -> None:
    assert "aa10 train.py; `help` lists the commands" in terminal.await_prompt()
    terminal.type("op -order\t")
    terminal.until("_by")
    terminal.type("mi\t")
    terminal.until("cros")
    terminal.type("\r")
    assert re.search(r"MatMul +10.0 µs +40 %", terminal.await_prompt())
    terminal.type("scope -show_name_regexes net/Mat\t")
    terminal.until("Mul")
    terminal.type("\r")
    assert re.search(r"\nnet/MatMul +10.0 µs +40 %", terminal.await_prompt())
    terminal.type("history\r")
    assert "2  scope -show_name_regexes net/MatMul" in terminal.await_prompt()
    terminal.type("exit\r")
    assert terminal.wait_end() == 0
    history = tmp_path / "tfprof" / "shell_history"
    assert history.read_text().splitlines()[0] == "op -order_by micros"
    assert history.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tfprof"]


def test_a_new_shell_has_the_history_of_earlier_shells(terminal: Terminal, store: Path, tmp_path: Path) -> None:
    terminal.await_prompt()
    terminal.type("set -max_depth 7\r")
    terminal.await_prompt()
    terminal.type("\x04")
    assert terminal.wait_end() == 0
    second_terminal = Terminal("aa10", "--store", str(store), state=tmp_path)
    try:
        second_terminal.await_prompt()
        second_terminal.type("\x1b[A")
        second_terminal.until("set -max_depth 7")
        second_terminal.type("\r")
        second_terminal.await_prompt()
        second_terminal.type("\r")
        assert re.search(r"-max_depth +7", second_terminal.await_prompt())
        second_terminal.type("\x04")
        assert second_terminal.wait_end() == 0
    finally:
        second_terminal.close()


def test_ctrl_c_drops_a_line_and_ctrl_d_ends(terminal: Terminal) -> None:
    terminal.await_prompt()
    terminal.type("nonsense")
    terminal.until("nonsense")
    terminal.type("\x03")
    assert "E:" not in terminal.await_prompt()
    terminal.type("\x04")
    assert terminal.wait_end() == 0
    assert b"Traceback" not in terminal._output


def test_the_output_to_a_pipe_has_no_prompt(store: Path, tmp_path: Path) -> None:
    completed = subprocess.run(
        [*SHELL, "aa10", "--store", str(store)],
        input="op -select occurrence\nnonsense\nscope -select params\n",
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 1
    assert completed.stderr == "tfprof: no such command 'nonsense' (help) [usage]\n"
    assert completed.stdout.count(" view of job ") == 2
    assert "tfprof>" not in completed.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_closes_the_pipe_is_no_error(store: Path) -> None:
    command = [*SHELL, "aa10", "--store", str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"help\n" * 5000)
        process.stdin.flush()
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_each_answer_includes_the_newest_data_of_the_store(tmp_path: Path) -> None:
    writer = LocalStoreWriter(tmp_path / "s", HOST)
    job = writer.job(5 << 60)
    job.set_identity(IDENTITY)
    command = [*SHELL, "last", "--store", str(tmp_path / "s")]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as shell:
            assert shell.stdin is not None
            assert shell.stdout is not None
            shell.stdin.write("op\n")
            shell.stdin.flush()
            assert shell.stdout.readline().startswith("tfprof: no traced steps yet")
            job.append(trace_tables(small_store.GRAPH.SerializeToString(), [run_metadata([b"loss"])]))
            shell.stdin.write("op -show_name_regexes Mean\n")
            shell.stdin.close()
            assert "Mean " in shell.stdout.read()
    finally:
        writer.close()
