"""An idle daemon uses almost no CPU time, whatever event it waits for."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import channel_writer
from fakes.collector import FakeCollector
from fakes.cpu_time import cpu_shares
from fakes.polling import until
from tfprof.agent import launches
from tfprof.agent.launches import Launch
from tfprof.commands.daemons import read_status, running_pid
from tfprof.formats import runtime_dir, wire
from tfprof.formats.wire import Head

#: A random number, since agents of other tests see the channels of this test.
LAUNCH = secrets.randbits(63)
#: Share of a core below which a daemon is at rest. A daemon at rest on a quiet machine uses 0.0006
#: to 0.0027, a busy loop 1.
IDLE_SHARE = 0.01
#: Seconds of one measurement. A daemon writes its status file, and the agent sends counters, every
#: two seconds. A measurement contains three such intervals, so all have about equal work.
INTERVAL_S = 6.0
#: A job before its import of TensorFlow, without a channel.
STARTING_JOB = "print('started', flush=True); input()"
REFUSAL = json.dumps({"slug": "unknown-version", "text": "not spoken here"}).encode()


def await_rest(*pids: int) -> None:
    """Wait for a measurement of INTERVAL_S seconds in which each process hardly runs."""
    until(lambda: max(cpu_shares(*pids, interval_s=INTERVAL_S)) < IDLE_SHARE, "rest")


class Host:
    """A store with a running launch, and the processes of the test."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.instance_dir = runtime_dir.make_instance(str(store))
        launches.write(self.instance_dir, Launch(LAUNCH, os.getpid(), time.time_ns(), str(store), "host", "user"))
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *command: str) -> subprocess.Popen[str]:
        self.processes.append(subprocess.Popen(command, stdin=-1, stdout=-1, text=True))
        return self.processes[-1]

    def daemon(self, name: str) -> int:
        self.start(sys.executable, "-m", f"tfprof.{name}", "--store", str(self.store))
        until(lambda: self.status(name).get("written_ns") and running_pid(self.instance_dir, name), name)
        return running_pid(self.instance_dir, name)

    def job(self, count: int = 1) -> subprocess.Popen[str]:
        job = self.start(sys.executable, channel_writer.__file__, self.instance_dir, f"{LAUNCH:x}", str(count), "0")
        job.stdout.readline()
        return job

    def status(self, name: str = "agent") -> dict:
        return read_status(self.instance_dir, name) or {}

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
            process.communicate(timeout=30)


@pytest.fixture
def host(private_store: Path) -> Iterator[Host]:
    new_host = Host(private_store)
    yield new_host
    new_host.close()


@pytest.fixture
def collector(host: Host) -> Iterator[FakeCollector]:
    fake_collector = FakeCollector(host.instance_dir)
    yield fake_collector
    fake_collector.close()


def test_at_rest_without_a_job_and_with_an_idle_job(host: Host) -> None:
    collector = host.daemon("collector")
    agent = host.daemon("agent")
    until(lambda: host.status()["collector"] == collector, "a welcome")
    await_rest(agent, collector)
    host.job()
    until(lambda: any(job["acked"] for job in host.status()["jobs"].values()), "an ack")
    await_rest(agent, collector)


def test_at_rest_while_a_job_has_not_imported_tensorflow_yet(host: Host) -> None:
    collector = host.daemon("collector")
    agent = host.daemon("agent")
    until(lambda: host.status()["collector"] == collector, "a welcome")
    job = host.start(sys.executable, "-m", "tfprof.agent.launcher.run", sys.executable, "-c", STARTING_JOB)
    assert job.stdout.readline() == "started\n"
    assert not host.status()["jobs"]
    await_rest(agent, collector, job.pid)
    assert running_pid(host.instance_dir, "agent") == agent
    job.communicate("\n")


@pytest.mark.parametrize("job_ends", [False, True])
def test_at_rest_while_the_collector_is_gone_and_records_wait_for_it(
    host: Host, collector: FakeCollector, *, job_ends: bool
) -> None:
    agent = host.daemon("agent")
    until(lambda: host.status()["collector"], "a welcome")
    collector.answer = lambda _head, _body: []
    job = host.job(20_000)
    until(lambda: any(job["lag_bytes"] > 500_000 for job in host.status()["jobs"].values()), "a filling ring")
    if job_ends:
        job.kill()
    collector.pause()
    await_rest(agent)
    collector.start()


def test_at_rest_with_a_collector_of_another_version(host: Host, collector: FakeCollector) -> None:
    collector.greet = collector.answer = lambda _head, _body: [(Head(wire.REFUSE, 0, wire.GREETING), REFUSAL)]
    agent = host.daemon("agent")
    host.job()
    until(lambda: host.status()["stall"], "a refusal")
    await_rest(agent)


def test_an_unusable_store_is_tried_and_reported_only_once(host: Host, private_store: Path) -> None:
    private_store.write_text("a file")
    agent = host.daemon("agent")
    host.job()
    until(lambda: host.status()["stall"], "a reason")
    assert host.status()["stall"]["slug"] == "store-unwritable"
    await_rest(agent)
    assert Path(host.instance_dir, "collector.log").read_text().count("\n") == 1
    assert host.status("collector")["last_error"]["slug"] == "store-unwritable"
