"""The head is away while jobs of its nodes run and end, and while their agents end, too."""

import json
import os
import shutil
import signal
import stat
import sys
from pathlib import Path

from fakes.hosts import Host, add_node, head_and_node
from fakes.made_store import host_samples
from fakes.numbered_job import assert_stored_once, numbered_job
from fakes.polling import until
from tfprof.collector.store.reader import LocalStore

STEPS = 3000
JOB = numbered_job(STEPS)


def agent(node: Host) -> dict[str, object]:
    return dict(json.loads(node.run("tfprof", "status", "--json").stdout)["agent"])


def states(head: Host) -> list[tuple[str, str, int, int]]:
    return sorted((job["host"], job["state"], job["steps"], job["lost"]) for job in head.jobs())


def assert_all_stored_once(head: Host) -> None:
    """Check that all records and steps of both jobs are stored in order, and no sample twice."""
    store = LocalStore(head.home / "state/tfprof")
    for document in head.jobs():
        assert_stored_once(store.job(document["id"]), STEPS, samples_min=6)
    host_times = host_samples(store.path, "node1")["t_ns"].to_pylist()
    assert len(set(host_times)) == len(host_times)


def test_an_outage_of_the_head_loses_nothing_and_stores_nothing_twice(folder: Path) -> None:
    head, first, url = head_and_node(folder)
    second = add_node(head, folder / "m", "node2", url)  # has the host name of the first one
    service = head.start("tfprof", "serve", "--listen", url)
    spool, kept = first.home / "state/tfprof-spool", folder / "kept"
    try:
        jobs = [node.start("tfprof-run", sys.executable, "-c", JOB) for node in (first, second)]
        until(lambda: [job["steps"] > 0 for job in head.jobs()] == [True, True])
        service.kill()
        service.wait()
        for job in jobs:
            job.wait(60)
        until(lambda: not agent(first)["jobs"] and agent(first)["spool_bytes"])
        os.kill(int(str(agent(first)["pid"])), signal.SIGKILL)
        second.run("tfprof", "stop")
        assert "`tfprof start` sends it" in second.run("tfprof", "status").stdout
        shutil.copytree(spool, kept)
        assert {stat.S_IMODE(path.stat().st_mode) for path in spool.rglob("*")} == {0o700, 0o600}
        service = head.start("tfprof", "serve", "--listen", url)
        for node in (first, second):
            assert "started" in node.run("tfprof", "start").stdout
        ended = [(f"node{number}", "exited", STEPS, 0) for number in (1, 2)]
        until(lambda: states(head) == ended)
        until(lambda: not agent(first)["spool_bytes"])
        assert not list(spool.rglob("*.segment"))
        assert_all_stored_once(head)
        # An agent that dies after the last ACK leaves what it has delivered.
        first.run("tfprof", "stop")
        shutil.rmtree(spool)
        shutil.copytree(kept, spool)
        first.run("tfprof", "start")
        until(lambda: not list(spool.rglob("*.segment")))
        until(lambda: states(head) == ended)
        assert_all_stored_once(head)
    finally:
        for node in (first, second):
            node.run("tfprof", "stop")
        service.send_signal(signal.SIGTERM)
        service.wait(30)
