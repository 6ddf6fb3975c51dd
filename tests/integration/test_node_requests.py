"""`tfprof ps` and `doctor` on a node, asked on the head: agents answer, refuse, lie or die.

Tests collector/documents/daemons.py, collector/documents/processes.py, cli/hosts.py, cli/ps.py.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.hosts import Host, listening_head
from fakes.polling import until
from fakes.wire_agent import WireAgent
from tfprof.commands import key_files
from tfprof.formats import requests, wire
from tfprof.formats.requests import Reply
from tfprof.formats.wire import Head

PROCESS = {"pid": 1, "user": "u", "age_s": 1, "command": ["c"], "state": "attachable", "tensorflow": True}
PROCESS |= {"slug": None, "reason": None}


@pytest.fixture
def hosts(folder: Path) -> Iterator[tuple[Host, Host, str]]:
    """A head that listens, and a node; their paths are short enough for sockets."""
    with listening_head(folder) as homes:
        yield homes


def ps(head: Host, *hosts: str) -> dict[str, Any]:
    """Ask for the processes of ``hosts``; the exit status says whether all have answered."""
    completed = head.run("tfprof", "ps", "--json", *(word for host in hosts for word in ("--host", host)))
    document = json.loads(completed.stdout)
    assert completed.returncode == int(bool(document["unanswered"])), completed.stderr
    return dict(document)


def slugs(head: Host, *hosts: str) -> dict[str, str]:
    return {one["host"]: one["slug"] for one in ps(head, *hosts)["unanswered"]}


def _pids_of_tensorflow(node: Host) -> set[int]:
    return {process["pid"] for process in json.loads(node.run("tfprof", "ps", "--json").stdout)["processes"]}


def start_agent(head: Host, node: Host) -> int:
    node.run("tfprof", "start")
    until(lambda: slugs(head, "node1") == {})
    return int(json.loads(node.run("tfprof", "status", "--json").stdout)["agent"]["pid"])


def test_the_agent_of_a_node_answers_until_its_settings_refuse(hosts: tuple[Host, Host, str]) -> None:
    head, node, _ = hosts
    until(lambda: "node-away" in head.run("tfprof", "ps", "--host", "node1").stderr)
    assert "`tfprof start` there" in head.run("tfprof", "doctor", "--host", "node1", "1").stderr
    start_agent(head, node)
    pids = _pids_now()
    before = _pids_of_tensorflow(node)
    asked = {process["pid"] for process in ps(head, "node*")["processes"]}
    after = _pids_of_tensorflow(node)
    stayed = pids & _pids_now()  # others began, ended or imported TensorFlow meanwhile
    assert before & after & stayed <= asked
    assert asked & stayed <= before | after
    assert slugs(head, "node1", "other*") == {"other*": "node-away"}
    there = json.loads(head.run("tfprof", "doctor", "--host", "node*", "--json", str(os.getpid())).stdout)
    here = json.loads(node.run("tfprof", "doctor", "--json", str(os.getpid())).stdout)
    assert {**here, "host": "node1"} == there
    gone = head.run("tfprof", "doctor", "--host", "node1", "4194303")
    assert (gone.returncode, "there is no process 4194303" in gone.stdout) == (1, True)
    assert "--host needs a PID" in head.run("tfprof", "doctor", "--host", "node1", "python", "x.py").stderr
    with (node.home / "config/tfprof/config.toml").open("a") as settings:
        settings.write("remote-orders = false\n")
    assert slugs(head, "node1") == {"node1": "remote-orders"}
    assert "[remote-orders]" in head.run("tfprof", "doctor", "--host", "node1", "1").stderr


def _pids_now() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def test_a_node_that_is_killed_is_reported_in_time(hosts: tuple[Host, Host, str]) -> None:
    head, node, _ = hosts
    pid = start_agent(head, node)
    os.kill(pid, signal.SIGSTOP)
    start = time.monotonic()
    assert slugs(head, "node1") == {"node1": "no-answer"}
    assert time.monotonic() - start < 20
    os.kill(pid, signal.SIGKILL)
    assert slugs(head, "node1") == {"node1": "node-away"}


class FakeAgent(threading.Thread):
    """An agent of the node ``name`` that answers each request with ``body``, also unasked."""

    def __init__(self, head: Host, url: str, name: str, body: bytes, *, greeting: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        path = head.home / f"{name}.key"
        assert head.run("tfprof", "keys", "add", name, "-o", str(path)).returncode == 0
        self.body = body
        self._url, self._key, self._is_ending = url, key_files.node_key(str(path)), False
        self._greeting = {"agent": "a", "host": "node1", "wire": list(wire.SUPPORTED_VERSIONS), **greeting}
        self.start()

    def run(self) -> None:
        agent = WireAgent("", url=self._url, key=self._key)
        while not self._is_ending:
            agent.send(Head(wire.GREETING), json.dumps(self._greeting).encode())
            while (message := agent.receive(0.5)) is not None:
                if message[0].type == wire.ASK:
                    for number in (message[0].last + 1, message[0].last, message[0].last):
                        agent.send(Head(wire.REPLY, 0, wire.ASK, 0, number), self.body)
        agent.close()

    def end(self) -> None:
        self._is_ending = True
        self.join(10)


def output(document: object) -> bytes:
    """Return the reply of a command that prints ``document``."""
    return json.dumps(Reply(0, json.dumps(document)).document()).encode()


#: What an agent may reply, and the slug that the client then shows.
LIES = (
    (b"[" * 1_000_000, "bad-reply"),
    (b"\xff{}", "bad-reply"),
    (json.dumps({"status": 0}).encode(), "bad-reply"),
    (output({"schema": "tfprof.ps/1"}), "bad-reply"),
    (output({"schema": "tfprof.ps/1", "processes": [{**PROCESS, "pid": "1"}]}), "bad-reply"),
    (output({"schema": "tfprof.ps/1", "processes": [{**PROCESS, "command": [1]}]}), "bad-reply"),
    (json.dumps(Reply(0, "no JSON").document()).encode(), "bad-reply"),
    (json.dumps(Reply(1, "", "Traceback\nError: \x1b[31m").document()).encode(), "node-failed"),
    (json.dumps(Reply(1, "", "tfprof: why [io]\n").document()).encode(), "io"),
    (b"{}" + b" " * requests.REPLY_MAX, "reply-too-large"),
)


def test_an_agent_that_lies_harms_nobody(hosts: tuple[Host, Host, str]) -> None:
    head, node, url = hosts
    agent = FakeAgent(head, url, "liar", b"", greeting={"requests": True})
    start_agent(head, node)
    until(lambda: slugs(head, "liar") == {"liar": "bad-reply"})
    for body, slug in LIES:
        agent.body = body
        assert slugs(head, "node1", "liar") == {"liar": slug}
        if slug == "node-failed":
            assert "\x1b" not in head.run("tfprof", "ps", "--host", "liar").stderr
    agent.end()


def test_odd_names_are_cleaned_and_jobs_are_not_believed(hosts: tuple[Host, Host, str]) -> None:
    head, _, url = hosts
    odd = {**PROCESS, "host": "node1", "user": "\x1b[2J", "command": ["\x07a", "\u202eb"], "job": "x", "warnings": [1]}
    body = output({"schema": "tfprof.ps/1", "processes": [odd], "unanswered": [1]})
    agent = FakeAgent(head, url, "liar", body, greeting={"requests": True})
    until(lambda: slugs(head, "liar") == {})
    (process,) = ps(head, "*")["processes"]
    assert (process["host"], process["job"], process["warnings"]) == ("liar", None, [])
    shown = head.run("tfprof", "ps", "--host", "liar").stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    agent.end()


def test_the_agent_of_another_release_is_named(hosts: tuple[Host, Host, str]) -> None:
    head, _, url = hosts
    agent = FakeAgent(head, url, "old", b"", greeting={"version": "0.2.9"})
    until(lambda: slugs(head, "old") == {"old": "unknown-version"})
    assert "its agent is of tfprof 0.2.9" in head.run("tfprof", "ps", "--host", "old").stderr
    agent.end()


def test_requests_are_made_on_the_head_only(hosts: tuple[Host, Host, str]) -> None:
    head, node, url = hosts
    path = node.home / "config/tfprof/collector.key"
    agent = WireAgent("", url=url, key=key_files.node_key(str(path)))
    agent.send(Head(wire.ASK, 0, 0, 0, 1), json.dumps({"hosts": ["*"], "command": "ps", "giver": {}}).encode())
    refused, reason = agent.expect(wire.REFUSE)
    assert (refused.about, reason["slug"]) == (wire.ASK, "order-remote")
    agent.close()
    assert "node-away" in node.run("tfprof", "ps", "--host", "*").stderr
    assert head.run("tfprof", "jobs").returncode == 0
