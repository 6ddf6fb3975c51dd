"""How the agent connects to a collector on another host, and what it says when it cannot."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
from fakes import node_keys
from fakes.polling import until
from tfprof.agent.transport import links
from tfprof.agent.transport.connection import CollectorConnection
from tfprof.collector.ingest.gate import Gate
from tfprof.commands import key_files
from tfprof.commands.key_files import KeyPair
from tfprof.formats import wire
from tfprof.formats.addresses import USER, Endpoint, remote_endpoint
from tfprof.formats.wire import Head


class FakeHead:
    """The socket of a collector that lets nodes in, and a node's connection to it."""

    def __init__(self, folder: Path) -> None:
        self.pair: KeyPair = node_keys.make_collector()
        self.key_file = folder / "tfprof/collector.key"
        self.url = f"tcp://127.0.0.1:{node_keys.free_port()}"
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.gate = Gate(self.context, self.pair, lambda _error: None)
        self.answer = Head(wire.WELCOME), json.dumps({"collector": "c1", "wire": max(wire.SUPPORTED_VERSIONS)})
        self.router: zmq.Socket[bytes] | None = None
        self.connection: CollectorConnection | None = None
        self.received: list[int] = []

    def listen(self, *, is_encrypted: bool = True) -> None:
        self.router = self.context.socket(zmq.ROUTER)
        if is_encrypted:
            self.gate.guard(self.router)
        self.router.bind(self.url)

    def write_key(self, node: str = "node1", collector: KeyPair | None = None) -> None:
        self.key_file.unlink(missing_ok=True)
        key_files.write_node_key(str(self.key_file), node_keys.add(node, collector or self.pair))

    def connect(self, key: str = "") -> None:
        self.connection = CollectorConnection(remote_endpoint(self.url), {"host": "h"}, key)

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.turn()
            if condition():
                return
        raise AssertionError(f"failure: {self.connection and self.connection.failure}")

    def turn(self) -> None:
        assert self.connection is not None
        now = time.monotonic()
        self.received += [head.type for head, _ in self.connection.answers(now)]
        self.connection.greet(now)
        self.gate.answer()
        self.gate.refresh()
        while self.router is not None and self.router.poll(1):
            peer = self.router.recv_multipart()[0]
            self.router.send_multipart([peer, wire.pack(self.answer[0]), self.answer[1].encode()])
        time.sleep(0.005)

    @property
    def slug(self) -> str | None:
        assert self.connection is not None
        return None if self.connection.failure is None else self.connection.failure["slug"]

    @property
    def is_accepted(self) -> bool:
        return self.connection is not None and self.connection.collector is not None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.gate.close()
        self.context.destroy(linger=0)


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHead]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(links, "RETRY_S", 0.2)
    fake_head = FakeHead(tmp_path)
    yield fake_head
    fake_head.close()


def test_a_node_with_its_key_is_welcome(head: FakeHead) -> None:
    head.listen()
    head.write_key()
    head.connect()
    head.until(lambda: head.is_accepted)
    assert head.slug is None


def test_a_missing_key_is_named_and_used_once_it_is_there(head: FakeHead) -> None:
    head.listen()
    head.connect()
    head.until(lambda: head.slug == "key-file")
    head.write_key()
    head.until(lambda: head.is_accepted)


def test_a_key_that_others_can_read_is_not_used(head: FakeHead) -> None:
    head.listen()
    head.write_key()
    head.key_file.chmod(0o644)
    head.connect()
    head.until(lambda: head.slug == "key-file")
    head.key_file.chmod(0o600)
    head.until(lambda: head.is_accepted)


def test_an_unknown_key_is_named_and_replaced_without_a_restart(head: FakeHead) -> None:
    head.listen()
    head.write_key()
    key_files.change_nodes("node1", None)
    head.connect()
    head.until(lambda: head.slug == "key-refused")
    assert head.connection is not None
    assert "node1" in (head.connection.failure or {})["text"]
    head.write_key()
    head.until(lambda: head.is_accepted)


def test_a_revoked_key_is_named_and_replaced_without_a_restart(head: FakeHead) -> None:
    head.listen()
    head.write_key()
    head.connect()
    head.until(lambda: head.is_accepted)
    welcome = head.answer
    head.answer = Head(wire.REFUSE, 0, wire.COUNTERS), json.dumps({"slug": "key-revoked", "text": "revoked"})
    assert head.connection is not None
    head.connection.send(Head(wire.COUNTERS, 7), b"{}")
    head.until(lambda: head.slug == "key-revoked")
    head.answer = welcome
    head.write_key()
    head.until(lambda: head.is_accepted)


def test_another_collector_is_told_from_the_one_of_the_key_which_is_replaced_without_a_restart(head: FakeHead) -> None:
    head.listen()
    head.write_key(collector=node_keys.new_pair())
    head.connect()
    head.until(lambda: head.slug == "collector-key")
    head.write_key()
    head.until(lambda: head.is_accepted)


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_what_another_collector_sends_never_arrives(head: FakeHead, is_encrypted: bool) -> None:
    head.answer = Head(wire.ORDER, 7, 0, 0, 1), "{}"
    head.listen(is_encrypted=is_encrypted)
    head.write_key(collector=node_keys.new_pair())
    head.connect()
    head.until(lambda: head.slug in ("collector-key", "collector-away"))
    assert head.received == []
    assert not head.is_accepted


def test_an_absent_collector_is_named_and_found_when_it_comes(head: FakeHead) -> None:
    head.write_key()
    head.connect()
    head.until(lambda: head.slug == "collector-away")
    head.listen()
    head.until(lambda: head.is_accepted)


def test_no_encryption_is_for_this_host_only(head: FakeHead) -> None:
    head.url = "tcp://node9:7199"
    head.connect(key="none")
    head.until(lambda: head.slug == "key-file")


def test_a_service_that_starts_the_collector_is_told_from_one_that_is_away(tmp_path: Path) -> None:
    endpoint = Endpoint(USER, str(tmp_path / "s"))
    connection = CollectorConnection(endpoint, {"host": "h"})

    def turn() -> bool:
        now = time.monotonic()
        assert list(connection.answers(now)) == []
        return connection.is_starting(now)

    until(lambda: not turn() and connection.failure is not None, "the reason")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(endpoint.place)
        listener.listen()
        until(turn, "the connection")
        assert connection.failure is None
        peer, _ = listener.accept()
        with peer:  # no collector: the service is silent
            assert turn()
        until(lambda: not turn(), "the end of the connection")
    until(lambda: connection.failure is not None, "the reason")
    connection.close()
