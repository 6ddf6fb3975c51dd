"""Samples and events arrive although the clock was set back between two agents, or stands still."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.channel_writer import ChannelWriter
from fakes.made_store import host_samples
from fakes.polling import until
from tfprof.agent import launches
from tfprof.agent.launches import Launch
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.commands.daemons import running_pid
from tfprof.formats import runtime_dir

LAUNCH = 0xC10C
TIMEOUT_S = 60.0
#: The times of the agents, one after the other: correct, an hour behind, and standing still twice.
TIMES_NS = ("real_ns()", "real_ns() - 3600 * 10**9", "10**18", "10**18")
#: An agent with a clock of its own.
AGENT = """
import sys, time
real_ns = time.time_ns
time.time_ns = lambda: {time_ns}
from tfprof.agent.__main__ import main
sys.exit(main(["--store", sys.argv[1]]))
"""


@pytest.fixture
def channel(private_store: Path) -> Iterator[ChannelWriter]:
    """The channel of a running job, whose launcher is another process."""
    instance_dir = runtime_dir.make_instance(str(private_store))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as launcher:
        launches.write(instance_dir, Launch(LAUNCH, launcher.pid, time.time_ns(), str(private_store), "host", "user"))
        writer = ChannelWriter(LAUNCH, hello={"name": "job.py", "framework": "tensorflow", "python": "3.11"})
        writer.announce(instance_dir)
        yield writer
        writer.close()


def sample_counts(store: Path, uid: int) -> tuple[int, int]:
    """Return the number of stored samples of the job, and of its host at any time."""
    job: LocalJob = LocalStore(store).job(f"{uid:016x}")
    has_host = any((store / "hosts").glob("*/job.json"))
    return job.table("samples").num_rows, host_samples(store, job.info.host).num_rows if has_host else 0


def test_samples_and_events_are_stored_whatever_the_clock_shows(private_store: Path, channel: ChannelWriter) -> None:
    channel.set(agent_lost=1)  # each agent sends an event about this
    instance_dir = runtime_dir.instance_dir(str(private_store))
    for agent_number, time_ns in enumerate(TIMES_NS, 1):
        agent = subprocess.Popen([sys.executable, "-c", AGENT.format(time_ns=time_ns), str(private_store)])
        until(lambda agent=agent: running_pid(instance_dir, "agent") == agent.pid, "the agent", TIMEOUT_S)
        if agent_number == 1:
            until((private_store / "jobs" / f"{channel.uid:016x}/job.json").exists, "the job", TIMEOUT_S)
        job_count, host_count = sample_counts(private_store, channel.uid)

        def has_more_samples(job_count: int = job_count, host_count: int = host_count) -> bool:
            new_job_count, new_host_count = sample_counts(private_store, channel.uid)
            return new_job_count > job_count + 2 and new_host_count > host_count + 2

        until(has_more_samples, f"samples of agent {agent_number}", TIMEOUT_S)
        events = LocalStore(private_store).job(f"{channel.uid:016x}").table("events")
        assert events["slug"].to_pylist() == ["agent-lost"] * agent_number
        agent.kill()
        agent.wait()
