"""A node sends its jobs to a collector on another host. Each host is a home folder.

Tests agent/daemon/collectors.py, cli/keys.py.
"""

import json
import signal
import socket
import sys
from pathlib import Path

from fakes.channel_job import OBEDIENT_JOB
from fakes.hosts import head_and_node
from fakes.numbered_job import assert_stored_once, numbered_job
from fakes.polling import until
from tfprof.collector.store.reader import LocalStore

JOB = numbered_job(100)


def test_orders_of_the_head_reach_a_job_of_a_node_until_the_node_refuses_them(folder: Path) -> None:
    head, node, url = head_and_node(folder)
    service = head.start("tfprof", "serve", "--listen", url)
    jobs = [node.start("tfprof-run", "--name", "first", sys.executable, "-c", OBEDIENT_JOB)]
    try:
        until(lambda: [job["steps"] > 0 for job in head.jobs()] == [True])
        status, answer = head.order("trace", "first", "--steps", "3")
        assert (status, answer["obeyed"], answer["host"], answer["kind"]) == (0, True, "node1", "run")
        jobs.append(head.start("tfprof-run", "--name", "beside", sys.executable, "-c", OBEDIENT_JOB))
        until(lambda: [job["steps"] > 2 for job in head.jobs()] == [True, True])
        group = head.run("tfprof", "trace", "--group", "beside", "--steps", "3", "--json")
        workers = json.loads(group.stdout)["jobs"]
        assert (group.returncode, group.stderr) == (0, "")
        assert {worker["host"] for worker in workers} == {"node1", socket.gethostname()}
        assert len({worker["step"] for worker in workers}) == 1
        service.kill()
        service.wait()
        service = head.start("tfprof", "serve", "--listen", url)
        assert head.order("trace", "first", "--end", "--wait", "60s")[1]["step"] > answer["step"]
        assert "ssh 127.0.0.1" in node.run("tfprof", "trace", "first", "--off").stderr
        status, answer = head.order("detach", "first")
        assert (status, answer["obeyed"]) == (0, True)
        until(lambda: "detached" in [job["state"] for job in head.jobs()])
        with (node.home / "config/tfprof/config.toml").open("a") as settings:
            settings.write("remote-orders = false\n")
        jobs.append(node.start("tfprof-run", "--name", "second", sys.executable, "-c", OBEDIENT_JOB))
        until(lambda: len(head.jobs()) == 3)
        for words in (("trace", "second", "--off"), ("detach", "second")):
            status, answer = head.order(*words)
            assert (status, answer["obeyed"], answer["slug"]) == (1, False, "remote-orders")
        node.run("tfprof", "stop")
        status, answer = head.order("trace", "second", "--off", "--wait", "1s")
        assert (status, answer["slug"]) == (1, "node-away")
        assert "`tfprof status` on node1" in answer["text"]
    finally:
        for job in jobs:
            job.kill()
            job.wait()
        node.run("tfprof", "stop")
        head.run("tfprof", "stop")
        service.send_signal(signal.SIGTERM)
        service.wait(30)


def test_jobs_of_a_node_are_stored_on_the_head_even_if_it_was_away(folder: Path) -> None:
    head, node, url = head_and_node(folder)
    service = None
    try:
        away = node.run("tfprof-run", sys.executable, "-c", JOB)
        assert "collector-away" in away.stderr
        assert "the agent of this host keeps what is not stored" in away.stderr
        assert "stored on" not in away.stderr
        service = head.start("tfprof", "serve", "--listen", url)
        until(lambda: [job["state"] for job in head.jobs()] == ["exited"])
        there = node.run("tfprof-run", sys.executable, "-c", JOB)
        assert "ssh 127.0.0.1 tfprof show" in there.stderr
        assert [(job["host"], job["steps"], job["lost"]) for job in head.jobs()] == [("node1", 100, 0)] * 2
        assert "store-remote" in node.run("tfprof", "jobs").stderr
        assert not (node.home / "state/tfprof").exists()
        head.run("tfprof", "keys", "revoke", "node1")
        revoked = node.run("tfprof-run", sys.executable, "-c", JOB)
        assert "revoked" in revoked.stderr
        assert len(head.jobs()) == 2
    finally:
        node.run("tfprof", "stop")
        if service is not None:
            service.send_signal(signal.SIGTERM)
            service.wait(30)


def test_a_job_whose_nodes_key_is_revoked_is_lost_until_the_node_has_a_key_again(folder: Path) -> None:
    head, node, url = head_and_node(folder)
    key = node.home / "config/tfprof/collector.key"
    service = head.start("tfprof", "serve", "--listen", url)

    def is_seen(*expected: object) -> bool:
        return [(job["state"], job["steps"], job["lost"]) for job in head.jobs()] == [expected]

    try:
        job = node.start("tfprof-run", sys.executable, "-c", numbered_job(2000))
        until(lambda: [job["steps"] > 0 for job in head.jobs()] == [True])
        head.run("tfprof", "keys", "revoke", "node1")
        until(lambda: [(job["state"], job["lost"]) for job in head.jobs()] == [("lost", None)])
        key.unlink()
        assert "wrote" in head.run("tfprof", "keys", "add", "node1", "-o", str(key)).stdout
        job.wait(60)
        until(lambda: is_seen("exited", 2000, 0))
        assert_stored_once(LocalStore(head.home / "state/tfprof").jobs()[0], 2000, samples_min=1)
    finally:
        node.run("tfprof", "stop")
        service.send_signal(signal.SIGTERM)
        service.wait(30)
