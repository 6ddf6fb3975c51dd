"""The clock of a node jumps by an hour, back and forth, while its data goes through the spool."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.hosts import Host, head_and_node
from fakes.numbered_job import assert_stored_once, numbered_job
from fakes.polling import until
from fakes.shifted_clock import ShiftedClock
from tfprof.collector.store.reader import LocalStore

HOUR = 3600
STEPS = 3000
JOB = numbered_job(STEPS)


def start_agent(node: Host, url: str, clock: ShiftedClock) -> "subprocess.Popen[bytes]":
    """Start the agent of ``node`` with a clock of its own."""
    command = [sys.executable, "-m", "tfprof.agent", "--store", url]
    agent = subprocess.Popen(command, env={**node.environ, **clock.environ}, stderr=subprocess.DEVNULL)
    until(lambda: status(node)["alive"] and status(node)["pid"] == agent.pid)
    return agent


def status(node: Host) -> dict[str, Any]:
    return dict(json.loads(node.run("tfprof", "status", "--json").stdout)["agent"])


@pytest.mark.parametrize("first", [HOUR, -HOUR])
def test_a_clock_that_jumps_loses_nothing_and_stores_nothing_twice(folder: Path, first: int) -> None:
    head, node, url = head_and_node(folder)
    clock = ShiftedClock(folder)
    service = head.start("tfprof", "serve", "--listen", url)
    agent = start_agent(node, url, clock)
    try:
        job = node.start("tfprof-run", sys.executable, "-c", JOB)
        until(lambda: [job["steps"] > 0 for job in head.jobs()] == [True])
        clock.set(first)  # while the head takes the data
        time.sleep(2)
        service.kill()
        service.wait()
        clock.set(-first)  # while the agent finds the head away
        until(lambda: status(node)["spool_bytes"])
        clock.set(0)
        job.wait(60)
        until(lambda: not status(node)["jobs"])
        agent.kill()
        agent.wait()
        clock.set(first)  # while no agent runs
        agent = start_agent(node, url, clock)
        service = head.start("tfprof", "serve", "--listen", url)
        until(lambda: [(job["state"], job["steps"], job["lost"]) for job in head.jobs()] == [("exited", STEPS, 0)])
        until(lambda: not status(node)["spool_bytes"])
        clock.set(-first)
        assert node.run("tfprof-run", sys.executable, "-c", JOB).returncode == 0
        assert agent.poll() is None, "another agent has the clock of this host"
        until(lambda: [(job["state"], job["steps"], job["lost"]) for job in head.jobs()] == [("exited", STEPS, 0)] * 2)
        assert_all_stored_once(head)
    finally:
        agent.terminate()
        agent.wait(30)
        service.send_signal(signal.SIGTERM)
        service.wait(30)


def assert_all_stored_once(head: Host) -> None:
    """Check that all records, steps and samples of the jobs are stored, each once."""
    store = LocalStore(head.home / "state/tfprof")
    times = [assert_stored_once(store.job(document["id"]), STEPS, samples_min=3) for document in head.jobs()]
    assert max(max(of_job) - min(of_job) for of_job in times) > HOUR * 10**9, "the clock did not jump"
