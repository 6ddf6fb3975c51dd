"""A job under `tfprof-run` gets each signal once, and ends as it does without `tfprof-run`."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from fakes.channel_job import OPEN_CHANNEL
from fakes.command import stored_jobs
from fakes.polling import until
from tfprof.agent import launches
from tfprof.agent.launcher.forwarding import GRACE_S, SETTLE_S
from tfprof.formats import runtime_dir

pytestmark = pytest.mark.usefixtures("private_store")

RUN = [sys.executable, "-m", "tfprof.agent.launcher.run", "--quiet"]

#: Prints each signal in its handler. A short time after the first signal, prints the list of all
#: signals.
JOB = """
import signal, sys, time
got = []
def handler(number, frame):
    got.append(int(number))
    print("signal", int(number), flush=True)
for number in map(int, sys.argv[1].split(",")):
    signal.signal(number, handler)
print("up", flush=True)
until = time.monotonic() + 30
while not got and time.monotonic() < until:
    time.sleep(0.005)
time.sleep(0.15)
print("got", *got, flush=True)
sys.exit(7)
"""


def _words(process: psutil.Process) -> list[str]:
    """Return the command line of ``process``, empty for one that has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class WaitingJob:
    """A job that waits for signals, in a new session; ``prefix`` is the command of its launcher."""

    def __init__(self, prefix: list[str], numbers: str) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", JOB, numbers], stdout=-1, text=True, start_new_session=True
        )
        assert self.process.stdout.readline() == "up\n"

    @functools.cached_property
    def group_pids(self) -> list[int]:
        """The pids of the job's process group, the oldest first."""
        return sorted(pid for pid in psutil.pids() if _group_id(pid) == self.process.pid)

    def wait_end(self) -> tuple[list[str], int]:
        """Wait until the job ends; return the signals that it got, and its exit status."""
        try:
            printed = self.process.communicate(timeout=60)[0].splitlines()
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            raise
        return printed[-1].split()[1:], self.process.returncode


def _group_id(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # a helper of the launcher has ended meanwhile
        os.kill(pid, number)


def _to_the_launcher(waiting_job: WaitingJob, number: int) -> None:
    waiting_job.process.send_signal(number)


def _to_the_group(waiting_job: WaitingJob, number: int) -> None:
    os.killpg(waiting_job.process.pid, number)


def _to_each_in_turn(waiting_job: WaitingJob, number: int) -> None:
    for pid in waiting_job.group_pids:
        _kill(pid, number)


def _to_each_in_reverse(waiting_job: WaitingJob, number: int) -> None:
    for pid in reversed(waiting_job.group_pids):
        _kill(pid, number)


def _slowly_to_each(waiting_job: WaitingJob, number: int) -> None:
    for pid in waiting_job.group_pids:
        _kill(pid, number)
        time.sleep(0.003)


def _as_timeout_does(waiting_job: WaitingJob, number: int) -> None:
    os.kill(waiting_job.process.pid, number)
    os.killpg(waiting_job.process.pid, number)


WAYS = [
    _to_the_launcher,
    _to_the_group,
    _to_each_in_turn,
    _to_each_in_reverse,
    _slowly_to_each,
    _as_timeout_does,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGCONT, signal.SIGRTMIN + 2], ids=int)
def test_a_signal_reaches_the_job_once(way: Callable[[WaitingJob, int], None], number: int) -> None:
    if way is _as_timeout_does and number > signal.SIGRTMIN:
        pytest.skip("two queued signals count twice")
    longest_s = SETTLE_S / 2 if way is _as_timeout_does else GRACE_S / 2
    durations_s = []
    for _ in range(20):
        waiting_job = WaitingJob(RUN, str(int(number)))
        _ = waiting_job.group_pids  # not part of the measured time
        start_s = time.monotonic()
        way(waiting_job, number)
        # On a loaded machine this process may pause for so long that its signals do not count as
        # one.
        durations_s.append(time.monotonic() - start_s)
        result = waiting_job.wait_end()
        if durations_s[-1] <= longest_s:
            break
    assert result == ([str(int(number))], 7), durations_s


def test_a_signal_to_only_the_job_reaches_it_once() -> None:
    waiting_job = WaitingJob(RUN, "15")
    (job,) = (
        process for process in psutil.Process(waiting_job.process.pid).children() if _words(process)[1:2] == ["-c"]
    )
    job.send_signal(15)
    assert waiting_job.wait_end() == (["15"], 7)


def test_each_signal_to_only_the_launcher_reaches_the_job() -> None:
    number = signal.SIGRTMIN + 2
    code = f"""
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])
print("up", flush=True)
count = 0
while signal.sigtimedwait([{int(number)}], 1 if count else 30): count += 1
print(count)
"""
    with subprocess.Popen([*RUN, sys.executable, "-c", code], stdout=-1, text=True) as launcher:
        assert launcher.stdout.readline() == "up\n"
        for _ in range(20):
            launcher.send_signal(number)
        assert launcher.stdout.read() == "20\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGABRT, signal.SIGXCPU, signal.SIGSEGV, signal.SIGPIPE])
def test_a_job_without_a_handler_ends_by_the_signal(number: int) -> None:
    with subprocess.Popen([*RUN, "sh", "-c", "echo up; exec sleep 60"], stdout=-1, text=True) as launcher:
        assert launcher.stdout.readline() == "up\n"
        launcher.send_signal(number)
    assert launcher.returncode == -number


@pytest.mark.parametrize("receiver", ["group", "launcher"])
def test_a_stopped_group_continues_on_a_signal_to_the_group_or_the_launcher(receiver: str) -> None:
    waiting_job = WaitingJob(RUN, "18")
    os.killpg(waiting_job.process.pid, signal.SIGSTOP)
    until(lambda: all(_is_stopped(pid) for pid in waiting_job.group_pids), "the stop of the group")
    time.sleep(0.6)  # longer than the launcher waits for its next event
    (os.killpg if receiver == "group" else os.kill)(waiting_job.process.pid, signal.SIGCONT)
    assert waiting_job.wait_end() == (["18"], 7)


#: Runs a launcher in which a system call of a forked child takes a second.
SLOW_LAUNCHER = """
import os, sys, time
name = sys.argv[1]
call = getattr(os, name)
def slow_call(*args):
    os.write(1, b"up\\n")
    time.sleep(1)
    return call(*args)
setattr(os, name, slow_call)
from tfprof.agent.launcher.run import main
sys.exit(main(["--quiet", "sleep", "2.5"]))
"""


@pytest.mark.parametrize("call", ["setsid", "execve"], ids=["start-of-the-agent", "start-of-the-job"])
def test_a_launcher_continues_with_a_child_that_is_not_yet_executed(call: str) -> None:
    launcher = subprocess.Popen([sys.executable, "-c", SLOW_LAUNCHER, call], stdout=-1, start_new_session=True)
    try:
        assert launcher.stdout.readline() == b"up\n"
        os.killpg(launcher.pid, signal.SIGSTOP)
        until(lambda: _is_stopped(launcher.pid), "the stop of the group")
        time.sleep(0.3)
        os.kill(launcher.pid, signal.SIGCONT)
        assert launcher.wait(20) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.communicate()


@pytest.mark.parametrize("next_signal", [signal.SIGCONT, signal.SIGKILL])
def test_a_launcher_ends_with_its_job_after_a_stop_of_only_the_job(next_signal: int) -> None:
    """The launcher stops with its job, so that a shell sees the stop.

    The launcher must not stay stopped when the job continues or is killed.
    """
    launcher = subprocess.Popen([*RUN, sys.executable, "-c", "print('up', flush=True); input()"], stdin=-1, stdout=-1)
    try:
        assert launcher.stdout.readline() == b"up\n"
        (job,) = (process for process in psutil.Process(launcher.pid).children() if _words(process)[1:2] == ["-c"])
        job.suspend()
        deadline = time.monotonic() + 10
        while not (_is_stopped(job.pid) and _is_stopped(launcher.pid)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        job.send_signal(next_signal)
        launcher.stdin.write(b"\n")
        launcher.stdin.flush()
        assert launcher.wait(10) == (0 if next_signal == signal.SIGCONT else -next_signal)
    finally:
        launcher.kill()
        launcher.communicate()


def _is_stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def test_the_value_of_a_queued_signal_is_forwarded() -> None:
    code = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [10])
print("up", flush=True)
info = signal.sigwaitinfo([10])
print(info.si_code, info.si_status)
"""
    import ctypes

    with subprocess.Popen([*RUN, sys.executable, "-c", code], stdout=-1, text=True) as launcher:
        assert launcher.stdout.readline() == "up\n"
        assert ctypes.CDLL(None).sigqueue(launcher.pid, 10, ctypes.c_void_p(-5 & 0xFFFFFFFF)) == 0
        assert launcher.stdout.read() == "-1 -5\n"


def test_after_the_job_has_closed_a_pipe_only_the_launcher_has_it_open() -> None:
    code = "import os, time; os.close(1); os.close(0); time.sleep(60)"
    with subprocess.Popen([*RUN, sys.executable, "-c", code], stdin=-1, stdout=-1) as launcher:
        until(
            lambda: (
                [pid for pid in _launcher_and_children(launcher) if _has_pipe_open(pid, launcher)] == [launcher.pid]
            ),
            "a closed pipe",
        )
        launcher.terminate()


def _launcher_and_children(launcher: subprocess.Popen) -> set[int]:
    return {launcher.pid, *(child.pid for child in psutil.Process(launcher.pid).children())}


def _has_pipe_open(pid: int, launcher: subprocess.Popen) -> bool:
    pipe = os.readlink(f"/proc/self/fd/{launcher.stdout.fileno()}")
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == pipe for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return True


def test_the_witness_is_no_child_of_the_job() -> None:
    code = "import os\ntry: print(os.wait())\nexcept ChildProcessError: print('none')"
    completed = subprocess.run(
        [*RUN, sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert completed.stdout == "none\n"


def _only(pids: set[int]) -> int | None:
    """Return the only pid; None if there are several, such as those of daemons that start."""
    return next(iter(pids)) if len(pids) == 1 else None


@pytest.mark.parametrize("runtime", ["usable", "unusable"])
def test_a_killed_witness_is_replaced(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a runtime folder the job is not profiled, but ends with its launcher all the same."""
    if runtime == "unusable":
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/dev/null/none")
    launcher = subprocess.Popen(
        [*RUN, "--quiet", sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"],
        stdout=-1,
        text=True,
    )
    job = int(launcher.stdout.readline())
    for _ in range(2):
        witness = until(lambda: _only(_launcher_and_children(launcher) - {launcher.pid, job}), "a witness")
        os.kill(witness, signal.SIGKILL)
        until(lambda witness=witness: not psutil.pid_exists(witness), "the end of the witness")
    until(lambda: _launcher_and_children(launcher) - {launcher.pid, job}, "a witness")
    until(lambda: psutil.Process(launcher.pid).status() == psutil.STATUS_SLEEPING, "the request to the witness")
    time.sleep(1)  # the launcher sleeps between its steps, too
    launcher.kill()
    launcher.communicate(timeout=30)  # until the job, too, has closed the pipe


CHANNEL_JOB = f"""{OPEN_CHANNEL}
for number in range(1, int(sys.argv[1]) + 1):
    while not writer.put(b'{{"slug": "fake", "text": "step"}}'): time.sleep(0.01)
    writer.put_span(number)
    if number == 200: print("at 200", os.getpid(), flush=True)
    time.sleep(0.005)
raise SystemExit(6)
"""


def test_a_killed_launcher_ends_its_job_and_no_record_is_lost(private_store: Path) -> None:
    launcher = subprocess.Popen([*RUN, sys.executable, "-c", CHANNEL_JOB, "100000"], stdout=-1, text=True)
    pid = int(launcher.stdout.readline().split()[-1])
    launcher.kill()
    launcher.communicate(timeout=30)  # until the job, too, has closed the pipe
    instance_dir = runtime_dir.instance_dir(str(private_store))
    (launch,) = launches.list_launches(instance_dir)
    (job,) = _result(instance_dir, launch).jobs
    assert (job["pid"], job["state"], job["dropped_records"]) == (pid, "killed", 0)
    assert job["records"] == job["acked"] >= 200
    description = launches.read(instance_dir, launch)
    assert (description.job_pid, description.signal, description.status) == (pid, 9, None)


def _result(instance_dir: str, launch: int) -> launches.Result:
    def complete_result() -> launches.Result | None:
        result = launches.read_result(instance_dir, launch)
        return result if result is not None and result.complete and result.jobs else None

    return until(complete_result, "the result of the agent")


def _any_job_has_ended() -> bool:
    return any(job["state"] != "running" for job in stored_jobs())


def test_with_exec_the_job_is_stored_to_its_end(private_store: Path) -> None:
    with subprocess.Popen(
        [*RUN, "--exec", "--name", "nightly", sys.executable, "-c", CHANNEL_JOB, "400"], stdout=-1, text=True
    ) as job:
        assert int(job.stdout.readline().split()[-1]) == job.pid
    assert job.returncode == 6
    until(_any_job_has_ended, "the end of the job in the store")
    (row,) = stored_jobs()
    assert (row["name"], row["pid"], row["state"], row["steps"]) == ("nightly", job.pid, "ended", 400)
    assert (row["lost"], row["status"], row["signal"]) == (0, None, None)


def test_with_exec_an_idle_agent_waits_for_the_job(private_store: Path, monkeypatch) -> None:
    monkeypatch.setenv("TFPROF_AGENT_IDLE", "0.5")
    instance_dir = runtime_dir.instance_dir(str(private_store))
    code = f"import time; print('up', flush=True); time.sleep(3)\n{CHANNEL_JOB}"
    with subprocess.Popen([*RUN, "--exec", sys.executable, "-c", code, "300"], stdout=-1, text=True) as job:
        assert job.stdout.read().split() == ["up", "at", "200", str(job.pid)]
    until(_any_job_has_ended, "the end of the job in the store")
    assert [(row["state"], row["steps"], row["lost"]) for row in stored_jobs()] == [("ended", 300, 0)]
    (launch,) = launches.list_launches(instance_dir)
    assert launches.read(instance_dir, launch).has_become_job
