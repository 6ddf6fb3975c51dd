"""The witness hears what is sent to the group, holds nothing, and ends with the launcher."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest
from tfprof.agent.launcher import witness

#: A launcher with a witness, in a group of its own: answers what it is asked on standard input.
LAUNCHER = """
import os, signal, subprocess, sys, time
from tfprof.agent.launcher import witness
from tfprof.commands.isolated import occupy_standard
occupy_standard()
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
watched = witness.begin(lambda pid: open(sys.argv[1], "w").write(str(pid)))
job = os.fork()
if job == 0:
    watched.announce_job()
    os.execvp("sleep", ["sleep", "60"])
print(watched.pid, job, flush=True)
for line in sys.stdin:
    if line == "dismiss\\n":
        watched.dismiss()
        break
    print(watched.signals(), flush=True)
sys.stdin.read()
"""


class Launcher:
    def __init__(self, report: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, report], stdin=-1, stdout=-1, text=True, start_new_session=True
        )
        self.witness, self.job = map(int, self.process.stdout.readline().split())

    def say(self, text: str) -> None:
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def signals(self) -> str:
        self.say("heard")
        return self.process.stdout.readline().strip()


@pytest.fixture
def launcher(tmp_path) -> Iterator[Launcher]:
    made = Launcher(str(tmp_path / "told"))
    yield made
    os.killpg(made.process.pid, signal.SIGKILL)
    made.process.communicate()


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def test_it_tells_what_was_sent_to_the_group_and_once(launcher: Launcher) -> None:
    assert launcher.signals() == "[]"
    for number in (signal.SIGTERM, signal.SIGCONT, signal.SIGRTMIN + 1, signal.SIGRTMIN + 1):
        os.killpg(launcher.process.pid, number)
    assert launcher.signals() == str([15, 18, signal.SIGRTMIN + 1, signal.SIGRTMIN + 1])
    launcher.process.send_signal(signal.SIGTERM)
    assert launcher.signals() == "[]"


def test_one_that_was_stopped_is_told_to_go_on_and_then_answers_again(launcher: Launcher) -> None:
    os.kill(launcher.witness, signal.SIGSTOP)
    assert launcher.signals() == "None"
    assert launcher.signals() == "[]"


def test_one_that_was_ended_is_no_trouble(launcher: Launcher) -> None:
    os.kill(launcher.witness, signal.SIGKILL)
    assert launcher.signals() == "None"
    launcher.say("dismiss")


def test_it_holds_nothing_of_what_its_launcher_has_open(launcher: Launcher) -> None:
    assert launcher.signals() == "[]"  # it is past its beginning
    folder = f"/proc/{launcher.witness}/fd"
    held = {int(fd): os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)}
    assert [held.pop(fd) for fd in range(3)] == ["/dev/null"] * 3
    assert [link.partition(":")[0] for link in held.values()] == ["pipe", "pipe"]


def test_it_ends_with_the_job_left_alone_when_it_is_told_to(launcher: Launcher, tmp_path) -> None:
    launcher.say("dismiss")
    assert gone(launcher.witness)
    launcher.process.kill()
    assert psutil.Process(launcher.job).is_running()
    assert not (tmp_path / "told").exists()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_launcher_that_is_killed_takes_its_job_along(launcher: Launcher, tmp_path, stopped: bool) -> None:
    if stopped:
        os.killpg(launcher.process.pid, signal.SIGSTOP)
    launcher.process.kill()
    launcher.process.wait()
    if stopped:
        os.killpg(launcher.process.pid, signal.SIGCONT)
    assert gone(launcher.job)
    assert gone(launcher.witness)
    assert (tmp_path / "told").read_text() == str(launcher.job)


def test_there_is_none_where_no_process_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise BlockingIOError

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fork", fail)
    assert isinstance(witness.begin(lambda pid: pid), witness.Absent)
    assert len(os.listdir("/proc/self/fd")) == before
