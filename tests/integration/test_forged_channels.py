"""Corrupt channels, and very many channels of one process: daemons survive, and serve other jobs.

TFPROF_FORGED is the number of corrupt channels, TFPROF_FORGED_SEED the seed. If TFPROF_FORGED is
set, a wait may be only as long as on a quiet machine.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from fakes import forger, many_channels
from fakes.channel_writer import ChannelWriter
from fakes.cpu_time import cpu_shares
from fakes.polling import until
from fakes.run_metadata import run_metadata, text
from fakes.valid_store import check_tables
from fakes.waits import Waits
from tfprof.agent import launches
from tfprof.agent.daemon.finder import CHANNELS_PER_PROCESS_MAX
from tfprof.agent.daemon.service import POLL_S
from tfprof.agent.launches import Launch
from tfprof.collector.store.reader import LocalStore
from tfprof.commands.daemons import read_status, running_pid
from tfprof.formats import layout, runtime_dir

COUNT = int(os.environ.get("TFPROF_FORGED", "120"))
SEED = int(os.environ.get("TFPROF_FORGED_SEED", "1"))
#: How long each child of the forger corrupts its channels (seconds).
CORRUPTION_S = 0.6
#: Number of channels of one process. Each needs two descriptors; the hard limit is 4,096 or more.
CHANNELS = 1_500
NEW_JOBS = 5
#: Number of jobs that end at about the same time.
ENDED_JOBS = 20 * CHANNELS_PER_PROCESS_MAX
#: A random number, since agents of other tests see the channels of this test.
LAUNCH = secrets.randbits(63)
DAEMONS = ("agent", "collector")
MEMORY_MAX = 256 << 20
#: A daemon uses less than this share of a core while its jobs do nothing.
IDLE_SHARE_MAX = 0.02
#: If a ring has at least this number of bytes, the agent sends them at its next poll, within half a
#: second.
SENT_AT_ONCE_BYTES = 300 << 10
TIMEOUT_S = 60.0
#: The longest time that one job may delay the messages of another, in addition to the interval at
#: which the agent polls the channels (seconds). If other tests run at the same time, a wait also
#: contains the time of their writes to the disk, and the time in which the host stops the virtual
#: machine.
DELAY_MAX_S = 0.5 if "TFPROF_FORGED" in os.environ else 4.0


class Host:
    """A store with a running launch, and both daemons."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.instance_dir = runtime_dir.make_instance(str(store))
        # The launcher is a separate process, because the process of the test is a job.
        self.launcher = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        launches.write(self.instance_dir, Launch(LAUNCH, self.launcher.pid, time.time_ns(), str(store), "host", "user"))
        self.daemons: dict[str, subprocess.Popen[str]] = {}
        for name in reversed(DAEMONS):
            command = [sys.executable, "-m", f"tfprof.{name}", "--store", str(store)]
            self.daemons[name] = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            until(lambda name=name: running_pid(self.instance_dir, name) == self.daemons[name].pid, name, TIMEOUT_S)
        until(lambda: self.status("agent").get("collector"), "a welcome", TIMEOUT_S)

    def status(self, name: str) -> dict:
        return read_status(self.instance_dir, name) or {}

    def peak_bytes(self, name: str) -> int:
        lines = Path(f"/proc/{self.daemons[name].pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

    @property
    def pids(self) -> list[int]:
        """Return the pids of both daemons."""
        return [daemon.pid for daemon in self.daemons.values()]

    def stop(self) -> list[tuple[int, str]]:
        results = []
        for process in self.daemons.values():
            process.send_signal(signal.SIGTERM)
        for process in self.daemons.values():
            _, errors = process.communicate(timeout=60)
            results.append((process.returncode, errors))
        return results


@pytest.fixture
def host(private_store: Path) -> Iterator[Host]:
    new_host = Host(private_store)
    yield new_host
    new_host.launcher.communicate()
    for process in new_host.daemons.values():
        if process.poll() is None:
            process.kill()
            process.communicate()


class HealthyJob:
    """A job with a valid channel, which puts one record at a time."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.channel = ChannelWriter(LAUNCH, hello={"name": "healthy.py", "framework": "tensorflow", "python": "3.11"})
        self.channel.announce(host.instance_dir)
        self.sent = 0
        self.waits = Waits(*host.pids)

    def step(self) -> None:
        """Put a record and wait until the agent has freed its space."""
        self.sent += 1
        data = run_metadata([b"n%d:Add" % (self.sent % 5)]) + text(15, bytes(SENT_AT_ONCE_BYTES))
        with self.waits.measure():
            assert self.channel.put(data, layout.RUN_METADATA, step=self.sent)
            until(lambda: self.channel.word("tail") == self.channel.word("head"), f"ack {self.sent}", TIMEOUT_S)


def await_others(host: Host) -> None:
    """Wait until only the healthy job is left.

    The deadline applies to the end of the next job, not to the end of all jobs.
    """
    while (count := len(host.status("agent")["jobs"])) > 1:
        until(
            lambda count=count: len(host.status("agent")["jobs"]) < count, f"the end of one of {count} jobs", TIMEOUT_S
        )


def start_script(module: ModuleType, host: Host, *arguments: object) -> "subprocess.Popen[str]":
    """Run a module of the fakes as a process of the launch; return the process."""
    command = [sys.executable, module.__file__, host.instance_dir, f"{LAUNCH:x}", *map(str, arguments)]
    environ = {"PYTHONPATH": str(Path(forger.__file__).parents[1]), "TFPROF_RUN": f"{LAUNCH:016x}@{host.instance_dir}"}
    return subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env={**os.environ, **environ})


@pytest.fixture
def healthy_job(host: Host) -> Iterator[HealthyJob]:
    new_job = HealthyJob(host)
    yield new_job
    with contextlib.suppress(OSError, ValueError):  # the test has closed the channel
        new_job.channel.close()


@pytest.mark.timeout(300 + 3 * COUNT)
def test_corrupt_channels_end_no_daemon_and_delay_no_other_job(host: Host, healthy_job: HealthyJob) -> None:
    for _ in range(3):
        healthy_job.step()
    forger_process = start_script(forger, host, SEED, COUNT, CORRUPTION_S)
    while forger_process.poll() is None:
        healthy_job.step()
    opened = sum(map(int, forger_process.communicate()[0].split()))
    await_others(host)
    healthy_job.step()
    uid = f"{healthy_job.channel.uid:016x}"
    until(lambda: host.status("agent")["jobs"][uid]["acked"] == healthy_job.sent, "all acks", TIMEOUT_S)
    peak_bytes = {name: host.peak_bytes(name) for name in DAEMONS}
    share = dict(zip(DAEMONS, cpu_shares(*(host.daemons[name].pid for name in DAEMONS)), strict=True))
    status = {name: host.status(name) for name in DAEMONS}
    healthy_job.channel.close()
    until(lambda: not host.status("agent")["jobs"], "the end of the healthy job", TIMEOUT_S)
    print(
        json.dumps(
            {
                "slowest_s": healthy_job.waits.slowest_s,
                "slowest_wall_s": healthy_job.waits.slowest_wall_s,
                "peak_bytes": peak_bytes,
                "share": share,
                "opened": opened,
            }
        )
    )
    print(json.dumps(status))
    assert host.stop() == [(0, "")] * len(DAEMONS)
    assert opened >= COUNT
    assert [status[name]["pid"] for name in DAEMONS] == [host.daemons[name].pid for name in DAEMONS]
    assert status["collector"]["failures"] == 0
    assert healthy_job.waits.slowest_s < POLL_S + DELAY_MAX_S
    assert max(peak_bytes.values()) < MEMORY_MAX
    assert max(share.values()) < IDLE_SHARE_MAX
    store = LocalStore(host.store)
    job = store.job(uid)
    assert [row["step"] for row in job.table("traces").to_pylist()] == list(range(1, healthy_job.sent + 1))
    assert job.table("events").num_rows == 0
    check_tables(store)


def test_very_many_channels_of_one_process_delay_no_new_job(host: Host) -> None:
    process = start_script(many_channels, host, CHANNELS)
    waits = Waits(*host.pids)
    new_jobs = []
    assert process.stdout.readline() == "done\n"
    for _ in range(NEW_JOBS):
        with waits.measure():
            new_jobs.append(HealthyJob(host))
            new_jobs[-1].step()
    until(lambda: host.status("agent")["refused"], "refusals", TIMEOUT_S)
    until(lambda: not host.status("agent")["waiting_channels"], "the last refusal", TIMEOUT_S)
    # At first, a daemon may still compile a module that nothing has used before.
    shares = min((cpu_shares(*host.pids) for _ in range(2)), key=max)
    peak_bytes = [host.peak_bytes(name) for name in DAEMONS]
    status = host.status("agent")
    print(
        json.dumps(
            {"slowest_s": waits.slowest_s, "wall_s": waits.slowest_wall_s, "peak_bytes": peak_bytes, "shares": shares}
        )
    )
    process.communicate("\n")
    for job in new_jobs:
        job.channel.close()
    until(lambda: not host.status("agent")["jobs"], "the end of the jobs", TIMEOUT_S)
    assert host.stop() == [(0, "")] * len(DAEMONS)
    assert len(status["jobs"]) == CHANNELS_PER_PROCESS_MAX + NEW_JOBS
    assert (status["refused"], status["refusals"][0]["slug"]) == (
        CHANNELS - CHANNELS_PER_PROCESS_MAX,
        "too-many-channels",
    )
    assert waits.slowest_s < POLL_S + DELAY_MAX_S
    assert max(peak_bytes) < MEMORY_MAX
    assert max(shares) < IDLE_SHARE_MAX


def test_many_jobs_that_end_before_they_are_stored_delay_no_other_job(host: Host, healthy_job: HealthyJob) -> None:
    healthy_job.step()
    collector = host.daemons["collector"]
    collector.send_signal(signal.SIGSTOP)
    processes = [
        start_script(many_channels, host, CHANNELS_PER_PROCESS_MAX)
        for _ in range(ENDED_JOBS // CHANNELS_PER_PROCESS_MAX)
    ]
    until(lambda: len(host.status("agent")["jobs"]) > ENDED_JOBS, "the jobs", TIMEOUT_S)
    for process in processes:
        process.communicate("\n")
    waits = healthy_job.waits = Waits(*host.pids)  # without the time in which the collector was stopped
    collector.send_signal(signal.SIGCONT)
    for _ in range(10):
        healthy_job.step()
    await_others(host)
    healthy_job.channel.close()
    print(json.dumps({"slowest_s": waits.slowest_s, "slowest_wall_s": waits.slowest_wall_s}))
    assert host.stop() == [(0, "")] * len(DAEMONS)
    # The margin is wide: a wait contains the work for all jobs served before the healthy job.
    assert waits.slowest_s < POLL_S + max(2.0, DELAY_MAX_S)
