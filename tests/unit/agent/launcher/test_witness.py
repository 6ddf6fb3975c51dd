"""The witness records signals to its group, closes inherited files, and ends with the launcher."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fakes.polling import until
from tfprof.agent.launcher import witness

#: A launcher with a witness, in a new process group. The launcher answers requests that it reads
#: from standard input.
LAUNCHER = """
import os, signal, subprocess, sys, time
from tfprof.agent.launcher import witness
from tfprof.commands.isolated import reserve_standard_fds
reserve_standard_fds()
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
running_witness = witness.begin(lambda pid, _fds: open(sys.argv[1], "w").write(str(pid)))
exec_reader, exec_writer = os.pipe()
job = os.fork()
if job == 0:
    running_witness.announce_job()
    os.execvp("sleep", ["sleep", "60"])
os.close(exec_writer)
os.read(exec_reader, 1)  # returns when exec closes the pipe in the job
print(running_witness.pid, job, flush=True)
for line in sys.stdin:
    if line == "dismiss\\n":
        running_witness.dismiss()
        break
    if line == "replace\\n":
        running_witness.replace_if_ended(job)
        print(running_witness.pid, flush=True)
        continue
    print(running_witness.signals(), flush=True)
sys.stdin.read()
"""


#: A launcher. Its group gets USR1 before the fork of the job, USR2 after the fork, and SIGRTMIN
#: after the announcement of the job.
EARLY_SIGNALS = """
import os, signal, subprocess, sys
from tfprof.agent.launcher import witness
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
running_witness = witness.begin(id)
subprocess.run(["kill", "-USR1", "0"])
job = os.fork()
if job == 0:
    os.killpg(0, signal.SIGUSR2)
    running_witness.announce_job()
    os.killpg(0, signal.SIGRTMIN)
    os._exit(0)
os.waitpid(job, 0)
print(*running_witness.signals(), flush=True)
print(*sorted(map(int, signal.sigpending() - {signal.SIGCHLD})))
running_witness.dismiss()
"""


#: A launcher. It signals its witness, starts a job, and prints the job's exit status.
HARMED_WITNESS = """
import os, signal, sys
from tfprof.agent.launcher import supervise, witness
inherited = supervise.block_signals()
running_witness = witness.begin(id)
os.kill(running_witness.pid, int(sys.argv[1]))
if int(sys.argv[1]) == signal.SIGKILL:
    os.waitid(os.P_PID, running_witness.pid, os.WEXITED | os.WNOWAIT)
job = supervise.start(["sh", "-c", "exit 3"], os.environ, inherited, running_witness.announce_job)
print(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]))
running_witness.dismiss()
"""


class Launcher:
    """A process that runs LAUNCHER, with the pids of its witness and its job.

    The witness writes the pid of a job that it kills to ``pid_file``.
    """

    def __init__(self, pid_file: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, pid_file], stdin=-1, stdout=-1, text=True, start_new_session=True
        )
        self.witness, self.job = map(int, self.process.stdout.readline().split())

    def say(self, text: str) -> None:
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, question: str) -> str:
        self.say(question)
        return self.process.stdout.readline().strip()

    def signals(self) -> str:
        return self.ask("signals")


@pytest.fixture
def launcher(tmp_path) -> Iterator[Launcher]:
    new_launcher = Launcher(str(tmp_path / "killed"))
    yield new_launcher
    with contextlib.suppress(ProcessLookupError):  # all of it has ended
        os.killpg(new_launcher.process.pid, signal.SIGKILL)
    new_launcher.process.communicate()


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_each_signal_to_the_group_is_returned_once(launcher: Launcher) -> None:
    assert launcher.signals() == "[]"
    for number in (signal.SIGTERM, signal.SIGCONT, signal.SIGRTMIN + 1, signal.SIGRTMIN + 1):
        os.killpg(launcher.process.pid, number)
    assert launcher.signals() == str([15, 18, signal.SIGRTMIN + 1, signal.SIGRTMIN + 1])
    launcher.process.send_signal(signal.SIGTERM)
    assert launcher.signals() == "[]"


def test_signals_before_the_fork_are_not_signals_of_the_job() -> None:
    command = [sys.executable, "-c", EARLY_SIGNALS]
    completed = subprocess.run(command, stdout=-1, text=True, start_new_session=True, timeout=60, check=True)
    job_signals, launcher_signals = completed.stdout.splitlines()
    assert job_signals.split() == ["12", str(int(signal.SIGRTMIN))]
    assert launcher_signals.split() == ["10", "12", str(int(signal.SIGRTMIN))]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_job_runs_whatever_happens_to_the_witness(number: signal.Signals) -> None:
    command = [sys.executable, "-c", HARMED_WITNESS, str(int(number))]
    completed = subprocess.run(command, stdout=-1, text=True, start_new_session=True, timeout=60, check=True)
    assert completed.stdout == "3\n"


def test_a_stopped_witness_is_continued_and_answers(launcher: Launcher) -> None:
    os.kill(launcher.witness, signal.SIGSTOP)
    os.killpg(launcher.process.pid, signal.SIGUSR1)
    assert launcher.signals() == "[10]"
    assert launcher.signals() == "[]"


def test_a_launcher_continues_without_its_witness(launcher: Launcher) -> None:
    os.kill(launcher.witness, signal.SIGKILL)
    assert launcher.signals() == "None"
    launcher.say("dismiss")


def test_a_killed_witness_is_replaced(launcher: Launcher, tmp_path: Path) -> None:
    assert launcher.ask("replace") == str(launcher.witness), "it runs"
    for _ in range(3):
        os.kill(launcher.witness, signal.SIGKILL)
        until(lambda: has_ended(launcher.witness), "the end of the witness")
        assert launcher.signals() == "None"
        launcher.witness = int(launcher.ask("replace"))
        assert not has_ended(launcher.witness)
        os.killpg(launcher.process.pid, signal.SIGUSR1)
        assert launcher.signals() == "[10]"
    launcher.process.kill()
    until(lambda: has_ended(launcher.job), "the end of the job")
    until(lambda: (tmp_path / "killed").exists() and (tmp_path / "killed").read_text() == str(launcher.job))


def test_a_witness_closes_the_descriptors_of_its_launcher(launcher: Launcher) -> None:
    assert launcher.signals() == "[]"  # the witness has started
    folder = f"/proc/{launcher.witness}/fd"
    link_of_fd = {int(fd): os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)}
    assert [link_of_fd.pop(fd) for fd in range(3)] == ["/dev/null"] * 3
    assert [link.partition(":")[0] for link in link_of_fd.values()] == ["pipe", "pipe"]


def test_a_dismissed_witness_ends_and_does_not_touch_the_job(launcher: Launcher, tmp_path) -> None:
    launcher.say("dismiss")
    until(lambda: has_ended(launcher.witness), "the witness's end", timeout_s=10.0)
    launcher.process.kill()
    assert psutil.Process(launcher.job).is_running()
    assert not (tmp_path / "killed").exists()


@pytest.mark.parametrize("is_stopped", [False, True])
def test_the_job_of_a_killed_launcher_is_killed(launcher: Launcher, tmp_path, is_stopped: bool) -> None:
    if is_stopped:
        os.killpg(launcher.process.pid, signal.SIGSTOP)
    launcher.process.kill()
    launcher.process.wait()
    if is_stopped:
        os.killpg(launcher.process.pid, signal.SIGCONT)
    until(lambda: has_ended(launcher.job), "the job's end", timeout_s=10.0)
    until(lambda: has_ended(launcher.witness), "the witness's end", timeout_s=10.0)
    assert (tmp_path / "killed").read_text() == str(launcher.job)


def test_there_is_no_witness_if_fork_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise BlockingIOError

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fork", fail)
    assert isinstance(witness.begin(lambda pid, _fds: pid), witness.NoWitness)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_signal_from_outside_of_the_pid_namespace_is_not_of_a_missing_witness() -> None:
    assert witness.NoWitness().pid != 0
