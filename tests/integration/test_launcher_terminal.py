"""A terminal and its shell control a job in the same way with and without the launcher."""

import os
import pty
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.polling import until

RUN = [sys.executable, "-m", "tfprof.agent.launcher.run", "--quiet"]

#: A shell with job control. It runs a command as a foreground group and prints each signal that
#: stops the command. When it reads a line, it continues the command.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        break
    print("shell: stopped by", os.WSTOPSIG(status), flush=True)
    input()
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
print("shell: code", os.waitstatus_to_exitcode(status), flush=True)
"""


class Terminal:
    """A shell on a new terminal; ``unread`` is its output after the last match of `until`."""

    def __init__(self, command: list[str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(sys.executable, [sys.executable, "-c", SHELL, *command])
        self.unread = b""

    def until(self, text: bytes) -> bytes:
        """Read until ``text`` is shown; return everything before it."""
        while text not in self.unread:
            self.unread += os.read(self.fd, 4096)
        before, _, self.unread = self.unread.partition(text)
        return before

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


JOB = """
import os, signal, sys, time
got = []
if sys.argv[1] == "trap":
    for n in (signal.SIGINT, signal.SIGQUIT, signal.SIGCONT, signal.SIGWINCH):
        signal.signal(n, lambda n, f: (got.append(int(n)), print("signal", int(n), flush=True)))
print("up", os.getpgrp() == os.tcgetpgrp(0), flush=True)
end = time.time() + float(sys.argv[2])
while time.time() < end: time.sleep(0.02)
print("got", *got, "end", flush=True)
"""


@pytest.fixture
def start_job(private_store: Path) -> Iterator:
    """Return a function that starts the job in the foreground of a new terminal."""
    terminals = []

    def start(prefix: list[str], *arguments: str) -> Terminal:
        terminals.append(Terminal([*prefix, sys.executable, "-c", JOB, *arguments]))
        terminals[-1].until(b"up True")
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


@pytest.mark.parametrize("prefix", [[], RUN], ids=["alone", "launched"])
def test_ctrl_c_reaches_the_job_once(start_job, prefix: list[str]) -> None:
    terminal = start_job(prefix, "trap", "1.5")
    terminal.type(b"\x03")
    assert terminal.until(b"end").split(b"got")[-1].split() == [b"2"]
    terminal.until(b"shell: code 0")


@pytest.mark.parametrize("prefix", [[], RUN], ids=["alone", "launched"])
def test_ctrl_c_ends_a_job_without_a_handler(start_job, prefix: list[str]) -> None:
    terminal = start_job(prefix, "default", "20")
    terminal.type(b"\x03")
    assert b"KeyboardInterrupt" in terminal.until(b"shell: code -2")


@pytest.mark.parametrize("prefix", [[], RUN], ids=["alone", "launched"])
def test_ctrl_backslash_ends_a_job(start_job, prefix: list[str]) -> None:
    terminal = start_job(prefix, "default", "20")
    terminal.type(b"\x1c")
    terminal.until(b"shell: code -3")


@pytest.mark.parametrize("prefix", [[], RUN], ids=["alone", "launched"])
def test_ctrl_z_stops_the_job_and_the_shell_continues_it(start_job, prefix: list[str]) -> None:
    terminal = start_job(prefix, "trap", "4")
    for _ in range(2):
        terminal.type(b"\x1a")
        terminal.until(b"shell: stopped by 20")
        terminal.type(b"\n")
        terminal.until(b"signal 18")
    assert terminal.until(b"end").split(b"got")[-1].split() == [b"18", b"18"]
    terminal.until(b"shell: code 0")


def test_a_hangup_of_the_terminal_reaches_a_job_whose_launcher_leads_the_session(private_store: Path, tmp_path) -> None:
    signal_file = tmp_path / "got"
    code = (
        "import signal, time\n"
        f"def handler(n, f): open({str(signal_file)!r}, 'w').write(str(n)); raise SystemExit(0)\n"
        "signal.signal(1, handler); print('up', flush=True)\ntime.sleep(20)"
    )
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [*RUN, sys.executable, "-c", code])
    output = b""
    while b"up\r\n" not in output:  # the job's print could fail if the terminal were closed earlier
        output += os.read(fd, 100)
    os.close(fd)
    os.waitpid(pid, 0)
    assert until(lambda: signal_file.exists() and signal_file.read_text(), "the signal") == "1"
