"""Attaches to loops that run without tfprof, profiles them, and detaches; nothing remains.

Tests shim/attached.py, agent/attach/__main__.py, agent/attach/payload.py, agent/attach/scripts.py.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from fakes import exported_slices
from fakes.polling import until
from tfprof.agent import processes
from tfprof.agent.attach.attachment import LOADING_TIMEOUT_S, Attachment, AttachOptions
from tfprof.agent.attach.errors import RefusedError
from tfprof.agent.attach.memory import ProcessMemory
from tfprof.cli.attach import AGENT_POLL_S
from tfprof.collector.query.explanations import untraced_reason
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.summaries.events import events
from tfprof.commands import daemons
from tfprof.formats import runtime_dir

JOBS = Path(__file__).parent / "jobs"
#: Number of attachments to each loop; more with TFPROF_TEST_ATTACHES=40.
ATTACHES = int(os.environ.get("TFPROF_TEST_ATTACHES", "2"))
TFPROF = [sys.executable, "-m", "tfprof.cli.main"]
#: Seconds in which TensorFlow starts and takes some steps, also on a loaded machine.
TIMEOUT_S = 180.0
#: A script name of this process alone: `attach --all` finds the loops of all tests on the host.
SCRIPT = f"attach_loop_{os.getpid()}.py"
LOOPS = [
    ("tf1", "session"),
    ("tf1", "fit"),
    ("tf2", "session"),
    ("tf2", "function"),
    ("tf2", "tape"),
    ("tf2", "fit"),
]

pytestmark = [pytest.mark.tf, pytest.mark.timeout(600)]


class ForkedLoop:
    """A running training loop in a process that was forked after the import of TensorFlow."""

    def __init__(self, server, kind, folder, steps=None):
        """Start a loop of ``kind``; it ends after ``steps``, or with `end`."""
        folder.mkdir()
        self._folder = folder
        if steps is not None:
            (folder / "steps").write_text(str(steps))
        self._script = server.start(JOBS / "attach_loop.py", kind, folder, CUDA_VISIBLE_DEVICES="")
        self.pid = self._script.pid
        until((folder / "running").exists, "the loop", TIMEOUT_S)

    def end(self):
        """End the loop and return its report."""
        (self._folder / "stop").touch()
        return self.report()

    def report(self):
        """Wait until the loop ends, and return its report."""
        result = self._script.finish()
        assert result.status == 0, result.errors[-4000:]
        assert "<tfprof" not in result.errors
        return json.loads(result.output[-1])


class Loop:
    """A running training loop in a process of its own; `end` stops it and returns its report."""

    def __init__(self, python, kind, folder):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        environ = {name: text for name, text in os.environ.items() if not name.startswith("TFPROF_")}
        script = shutil.copyfile(JOBS / "attach_loop.py", folder / SCRIPT)
        command = [str(python), str(script), kind, str(folder)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environ, "CUDA_VISIBLE_DEVICES": ""},
        )
        until(lambda: (folder / "running").exists() or self.process.poll() is not None, "the loop", TIMEOUT_S)
        assert self.process.poll() is None, self.process.communicate()[1][-2000:]

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        (self.folder / "stop").touch()
        out, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err[-4000:]
        assert "<tfprof" not in err
        return json.loads(out.splitlines()[-1])


@pytest.fixture
def loop(request, tmp_path):
    loops = []

    def start(venv, kind):
        python = request.getfixturevalue(f"{venv}_python")
        loops.append(Loop(python, kind, tmp_path / f"loop{len(loops)}"))
        return loops[-1]

    yield start
    for running_loop in loops:
        running_loop.process.kill()
        running_loop.process.communicate()


def end(attachment):
    """Detach, and wait until all data is stored."""
    attachment.detach()
    attachment.close_launch()
    result = attachment.wait_stored()
    assert result is not None
    assert result.complete
    attachment.end()


def assert_unchanged(report):
    """Check that at most one function each for forks and for the interpreter's end remains."""
    assert report["callbacks"] <= 2
    assert [report[name] for name in ("changed", "modules", "attributes", "objects")] == [[], [], [], []]


@pytest.mark.parametrize(("venv", "kind"), LOOPS)
def test_a_loop_is_profiled_while_attached_and_unchanged_after_the_detach(
    venv, kind, private_store, plain_forks, tmp_path
):
    job = ForkedLoop(plain_forks(venv), kind, tmp_path / "loop")
    options = AttachOptions(store=str(private_store), settings={"TFPROF_TRACE": "steps=1-5"})
    step = {"session": "train", "function": "function", "tape": "eager", "fit": "batch"}[kind]

    def is_traced(attachment):
        return attachment.channel.word("traced") >= 5 and attachment.channel.counters()["counts"][step] >= 10

    for _ in range(ATTACHES):
        attachment = Attachment(options, processes.process(job.pid))
        until(partial(is_traced, attachment), "traced steps", TIMEOUT_S)
        assert attachment.channel.word("faults") == 0
        end(attachment)
    assert_unchanged(job.end())
    stored = LocalStore(str(private_store)).jobs()
    assert [stored_job.info.state for stored_job in stored] == ["detached"] * ATTACHES
    for stored_job in stored:
        assert stored_job.table("ops").num_rows > 0


@pytest.mark.parametrize(("venv", "kind"), LOOPS)
def test_losses_equal_those_of_the_same_loop_without_tfprof(venv, kind, private_store, plain_forks, tmp_path):
    job = ForkedLoop(plain_forks(venv), kind, tmp_path / "loop")
    attachment = Attachment(
        AttachOptions(str(private_store), settings={"TFPROF_TRACE": "all"}), processes.process(job.pid)
    )
    until(lambda: attachment.channel.word("traced") >= 10, "traced steps", TIMEOUT_S)
    attachment.detach()
    attachment.end()
    report = job.end()
    plain_job = ForkedLoop(plain_forks(venv), kind, tmp_path / "plain", report["steps"])
    assert plain_job.report()["losses"] == report["losses"]


@pytest.mark.parametrize("venv", ["tf1", "tf2"])
def test_the_compiled_part_is_loaded_once(venv, private_store, plain_forks, tmp_path):
    job = ForkedLoop(plain_forks(venv), "session", tmp_path / "loop")
    options = AttachOptions(str(private_store), settings={"TFPROF_TRACE": "off"})
    for _ in range(ATTACHES):
        attachment = Attachment(options, processes.process(job.pid))
        until(lambda channel=attachment.channel: channel.counters()["counts"]["train"], "steps", TIMEOUT_S)
        lines = Path(f"/proc/{job.pid}/maps").read_text().splitlines()
        assert len({line.split()[4] for line in lines if "/memfd:native" in line}) == 1  # numbers of files
        attachment.detach()
        attachment.end()
    assert_unchanged(job.end())


@pytest.mark.parametrize("kind", ["fit", "single", "slow_begin", "eager_fit"])
def test_after_an_attach_no_function_call_in_a_batch_is_a_step(kind, private_store, plain_forks, tmp_path):
    job = ForkedLoop(plain_forks("tf2"), kind, tmp_path / "loop")
    options = AttachOptions(str(private_store), settings={"TFPROF_TRACE": "off"})
    for _ in range(4 * ATTACHES):
        attachment = Attachment(options, processes.process(job.pid))
        until(lambda channel=attachment.channel: channel.counters()["counts"]["batch"], "batches", TIMEOUT_S)
        counts = attachment.channel.counters()["counts"]
        assert {kind for kind, count in counts.items() if count} <= {"activity", "batch", "epoch"}
        attachment.detach()
        attachment.end()
    assert_unchanged(job.end())


@pytest.mark.parametrize(("venv", "kind"), [("tf1", "session"), ("tf2", "executions")])
def test_the_command_traces_steps_writes_them_prints_their_ops_and_detaches(loop, venv, kind, private_store, tmp_path):
    job = loop(venv, kind)
    files = [tmp_path / "a.parquet", tmp_path / "a.json"]
    completed = subprocess.run(
        [*TFPROF, "attach", str(job.pid), "-o", "ops", "-o", str(files[0]), "-o", str(files[1])],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert re.search(r"attached by (pending-call|gil-callback), longest stop \d", completed.stderr)
    assert "MatMul" in completed.stdout
    executions = pq.read_table(files[0])
    assert 10 <= len(executions["step"].unique()) <= 20  # the steps of one kind
    slices = exported_slices.chrome(files[1].read_bytes()).slices
    assert len([piece for piece in slices if piece.node]) == executions.num_rows
    assert job.end()["objects"] == []
    assert LocalStore(str(private_store)).jobs()[0].info.state == "detached"


def test_a_callable_with_unknown_outputs_is_timed_and_reported(loop, private_store):
    job = loop("tf1", "callable")
    options = AttachOptions(str(private_store), settings={"TFPROF_TRACE": "every=2"})
    attachment = Attachment(options, processes.process(job.pid))
    until(lambda: attachment.channel.counters()["counts"]["run"] >= 20, "steps", TIMEOUT_S)
    end(attachment)
    assert_unchanged(job.end())
    (stored,) = stored_jobs(private_store)
    assert [event.slug for event in events(stored.table("events")) if not event.is_harmless] == ["unknown-callable"]
    assert "was made before tfprof" in untraced_reason(stored)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("callable", "a callable"), ("function", "no profiler session"), ("tape", "no profiler session")],
)
def test_the_command_does_not_wait_for_steps_that_cannot_be_traced(loop, private_store, kind, reason):
    job = loop("tf1", kind)
    completed = subprocess.run(
        [*TFPROF, "attach", str(job.pid), "--steps", "5"], capture_output=True, text=True, timeout=120, check=False
    )
    assert completed.returncode == 1
    assert re.search(rf"{job.pid} .*: no traced steps yet: .*{reason}.*; its first 5 steps are over", completed.stderr)
    assert "detached; more with" in completed.stderr
    assert_unchanged(job.end())


def start_command(*arguments):
    """Start `tfprof` with ``arguments``."""
    return subprocess.Popen([*TFPROF, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def start_attached(job, *arguments):
    """Start `tfprof attach` for ``job``, and wait until it has attached."""
    command = start_command("attach", str(job.pid), *arguments)
    assert "attached by" in command.stderr.readline()
    return command


def test_the_command_says_why_it_waits(loop, private_store):
    job = loop("tf1", "callable")
    command = start_attached(job, "--steps", "1000000000")
    assert re.search(rf"{job.pid} .*: no traced steps yet: a callable .*; Ctrl-C detaches", command.stderr.readline())
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 0, err
    assert_unchanged(job.end())


def test_the_agent_stays_stopped_while_the_command_shows_steps(loop, private_store):
    job = loop("tf1", "session")
    command = start_attached(job)
    subprocess.run([*TFPROF, "stop"], capture_output=True, timeout=60, check=True)
    time.sleep(3 * AGENT_POLL_S)
    instance_dir = runtime_dir.instance_dir(str(private_store))
    assert daemons.running_pid(instance_dir, "agent") == 0
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert (command.returncode, "detached; more with" in err) == (0, True), err
    assert_unchanged(job.end())


def test_a_second_ctrl_c_says_what_is_not_detached_yet(loop, private_store):
    job = loop("tf1", "session")
    command = start_attached(job)
    os.kill(job.pid, signal.SIGSTOP)  # it takes no step, at which it could detach
    command.send_signal(signal.SIGINT)
    assert "detaching" in command.stderr.readline()
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    os.kill(job.pid, signal.SIGCONT)
    assert (command.returncode, f"{job.pid} {SCRIPT}: not detached yet" in err) == (-signal.SIGINT, True), err
    until(lambda: not processes.channels_of(job.pid), "the detach", TIMEOUT_S)
    assert_unchanged(job.end())


def opens_memory(command, pid):
    """Return whether a helper of ``command`` has opened the memory of process ``pid``."""
    for helper in psutil.Process(command.pid).children(recursive=True):
        with contextlib.suppress(OSError):  # a helper starts programs, and ends
            if f"/proc/{pid}/mem" in map(os.readlink, Path(f"/proc/{helper.pid}/fd").iterdir()):
                return True
    return False


def test_of_two_commands_at_once_one_attaches_and_the_other_one_reads_its_channel(loop, private_store):
    job = loop("tf1", "session")
    memory = ProcessMemory(job.pid)
    memory.lock(10.0)
    commands = [start_command("attach", str(job.pid)) for _ in range(2)]
    for command in commands:
        until(partial(opens_memory, command, job.pid), "a helper", TIMEOUT_S)
    memory.close()
    lines = {command.stderr.readline(): command for command in commands}
    reader = next(command for line, command in lines.items() if line.endswith("attached by channel\n"))
    (owner,) = {*commands} - {reader}
    for command, is_attached in ((reader, True), (owner, False)):
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=60)
        assert (command.returncode, bool(processes.channels_of(job.pid))) == (0, is_attached), err
    assert_unchanged(job.end())


def test_the_command_detaches_on_ctrl_c(loop, private_store):
    job = loop("tf1", "session")
    command = subprocess.Popen(
        [*TFPROF, "attach", str(job.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert command.stdout is not None
    assert "train" in command.stdout.readline()
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 0, err
    (uid,) = re.findall(r"detached; more with  tfprof op (\w+) · tfprof steps \1$", err, re.MULTILINE)
    assert subprocess.run([*TFPROF, "op", uid], capture_output=True, timeout=60, check=True).stdout
    assert job.end()["objects"] == []


def test_ctrl_c_while_attaching_to_a_second_job_detaches_from_the_first(loop, private_store):
    first, second = loop("tf1", "session"), loop("tf1", "session")
    memory = ProcessMemory(second.pid)
    memory.lock(10.0)  # the command waits for the lock
    command = start_attached(first, str(second.pid))
    until(partial(opens_memory, command, second.pid), "a helper", TIMEOUT_S)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    memory.close()
    assert command.returncode == 0, err
    assert "detached; more with" in err
    assert_unchanged(first.end())
    assert_unchanged(second.end())


@pytest.mark.parametrize(("venv", "kind"), [("tf1", "session"), ("tf1", "idle"), ("tf2", "idle")])
def test_a_job_stays_attached_until_an_order_detaches_it(loop, private_store, venv, kind):
    job = loop(venv, kind)
    attach = [*TFPROF, "attach", str(job.pid), "--no-wait"]
    err = subprocess.run(attach, capture_output=True, text=True, timeout=120, check=True).stderr
    (uid,) = re.findall(r"attached; detach it with  tfprof detach (\w+)$", err, re.MULTILINE)
    detach = [*TFPROF, "detach", uid, "--wait", "60s"]
    detached = subprocess.run(detach, capture_output=True, text=True, timeout=120, check=True)
    first_step = "" if kind == "idle" else r", from train step [\d,]+ on"
    assert re.fullmatch(rf"{uid} {SCRIPT}: detach{first_step}\n", detached.stdout)
    assert_unchanged(job.end())
    until(lambda: stored_jobs(private_store)[0].info.state == "detached", "the end of the job in the store")


def test_a_forked_child_of_a_profiled_job_is_already_profiled_before_its_first_step(
    armed_forks, private_store, tmp_path
):
    script = tmp_path / "idle.py"
    script.write_text("print('ready', flush=True)\ninput()\n")
    child = armed_forks("tf1").start(script).until_ready()
    before_s = time.monotonic()
    with pytest.raises(RefusedError, match="already profiled: its next step"):
        Attachment(AttachOptions(str(private_store)), processes.process(child.pid))
    assert time.monotonic() < before_s + LOADING_TIMEOUT_S
    child.go_on()
    assert child.finish().status == 0


def test_ps_shows_whether_a_loop_is_profiled(loop, private_store):
    job = loop("tf1", "session")

    def state():
        output = subprocess.run(
            [*TFPROF, "ps", "--json"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        return next(row["state"] for row in json.loads(output)["processes"] if row["pid"] == job.pid)

    assert state() == "attachable"
    attachment = Attachment(AttachOptions(str(private_store)), processes.process(job.pid))
    assert state() == "profiled"
    attachment.detach()
    attachment.end()
    assert state() == "attachable"
    job.end()


def test_the_command_attaches_to_all_processes_of_a_name(loop, private_store):
    jobs = [loop("tf1", "session") for _ in range(2)]
    completed = subprocess.run(
        [*TFPROF, "attach", "--all", SCRIPT.replace("oo", "??"), "--steps", "3"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    pids = sorted(job.pid for job in jobs)
    assert sorted(int(line.split()[1]) for line in completed.stderr.splitlines() if "attached by" in line) == pids
    assert [job.end()["objects"] for job in jobs] == [[], []]
    stored = LocalStore(str(private_store)).jobs()
    assert sorted(stored_job.info.identity["pid"] for stored_job in stored) == pids
    assert [stored_job.info.state for stored_job in stored] == ["detached"] * 2


def test_follow_attaches_to_a_process_that_starts_later(loop, private_store):
    command = subprocess.Popen(
        [*TFPROF, "attach", "--all", SCRIPT[:-3] + "*", "--follow", "--steps", "3"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    job = loop("tf1", "session")
    assert command.stderr is not None
    assert f"{job.pid} {SCRIPT}: attached by" in command.stderr.readline()

    def is_detached():
        jobs = stored_jobs(private_store)
        return any(
            (stored_job.info.state, stored_job.info.identity.get("pid")) == ("detached", job.pid) for stored_job in jobs
        )

    until(is_detached, "the job, detached", TIMEOUT_S)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 0, err
    assert job.end()["objects"] == []


def stored_jobs(store):
    return LocalStore(str(store)).jobs() if (store / "store.json").exists() else []
