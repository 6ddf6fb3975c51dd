"""The agent's end of the wire: greetings, answers, and refusals that end all sending."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from tfprof.agent.transport.connection import ABSENT_AFTER_S, GREET_S, REFUSED_GREET_S, CollectorConnection
from tfprof.formats import wire
from tfprof.formats.addresses import IPC, Endpoint
from tfprof.formats.wire import Head

TIMEOUT_MS = 20_000
WELCOME = {"collector": "c1", "wire": max(wire.SUPPORTED_VERSIONS), "pid": 1}


class FakeCollector:
    """The socket of a collector, and an agent's connection to it."""

    def __init__(self, instance_dir: Path) -> None:
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.bind(f"ipc://{instance_dir}/c.sock")
        self.connection = CollectorConnection(Endpoint(IPC, f"{instance_dir}/c.sock"), {"agent": "a", "host": "h"})
        self.peer = b""

    def close(self) -> None:
        self.connection.close()
        self.context.destroy(linger=0)

    def receive(self) -> tuple[Head, Any]:
        """Return the next message of the agent; it must arrive."""
        assert self.router.poll(TIMEOUT_MS)
        self.peer, head, body = self.router.recv_multipart()
        return wire.unpack(head), json.loads(body)

    def is_silent(self) -> bool:
        """Return whether no message has arrived.

        It does not wait. A message that arrives later is not missed: the next `receive` returns it.
        """
        return not self.router.poll(0)

    def await_greeting(self, now: float) -> None:
        """Make the agent greet; wait until it is connected."""
        attempts_left = 1000
        while not self.router.poll(20):
            self.connection.last_greeting_s = self.connection.last_answer_s = -REFUSED_GREET_S
            self.connection.greet(now)
            attempts_left -= 1
            assert attempts_left, "no greeting comes"
        self.connection.last_greeting_s = now
        while self.router.poll(20):
            head, body = self.receive()
            assert head.type == wire.GREETING
            assert (body["agent"], body["wire"]) == ("a", list(wire.SUPPORTED_VERSIONS))

    def send_answer(self, head: Head | bytes, body: bytes | dict[str, Any] = b"", *more: bytes) -> None:
        packed = head if isinstance(head, bytes) else wire.pack(head)
        self.router.send_multipart(
            [self.peer, packed, body if isinstance(body, bytes) else json.dumps(body).encode(), *more]
        )

    def answers(self, now: float) -> list[tuple[Head, dict[str, Any]]]:
        """Return the answers that have arrived; wait for at least one."""
        assert self.connection.socket.poll(TIMEOUT_MS)
        return list(self.connection.answers(now))


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[FakeCollector]:
    fake_collector = FakeCollector(tmp_path)
    fake_collector.await_greeting(100.0)
    yield fake_collector
    fake_collector.close()


def test_nothing_is_sent_before_a_welcome(collector: FakeCollector) -> None:
    assert not collector.connection.send(Head(wire.OPEN, 5), b"{}")
    assert not collector.connection.is_accepting(100.0)
    collector.send_answer(Head(wire.WELCOME), WELCOME)
    assert [head.type for head, _ in collector.answers(100.5)] == [wire.WELCOME]
    assert collector.connection.is_accepting(100.5)
    assert collector.connection.send(Head(wire.OPEN, 5), b"{}")
    assert collector.receive()[0].type == wire.OPEN


def test_a_further_welcome_counts_only_if_another_collector_sent_it(collector: FakeCollector) -> None:
    collector.send_answer(Head(wire.WELCOME), WELCOME)
    assert len(collector.answers(100.0)) == 1
    collector.send_answer(Head(wire.WELCOME), WELCOME)
    assert collector.answers(101.0) == []
    assert collector.connection.last_answer_s == 101.0
    collector.send_answer(Head(wire.WELCOME), {**WELCOME, "collector": "c2"})
    assert len(collector.answers(102.0)) == 1


def test_a_silent_collector_is_greeted_once_a_second_and_then_counts_as_absent(collector: FakeCollector) -> None:
    collector.send_answer(Head(wire.WELCOME), WELCOME)
    collector.answers(100.5)
    collector.connection.greet(100.5 + GREET_S - 0.01)
    assert collector.is_silent()
    collector.connection.greet(100.5 + GREET_S)
    assert collector.receive()[0].type == wire.GREETING
    collector.connection.greet(100.5 + GREET_S + 0.5)
    assert collector.is_silent()
    assert collector.connection.is_accepting(100.5 + ABSENT_AFTER_S - 0.1)
    assert not collector.connection.is_accepting(100.5 + ABSENT_AFTER_S)


def test_a_refusal_ends_all_sending_until_a_welcome_and_greetings_become_rare(collector: FakeCollector) -> None:
    collector.send_answer(Head(wire.WELCOME), WELCOME)
    collector.answers(100.0)
    collector.send_answer(Head(wire.REFUSE, 0, wire.GREETING), {"slug": "wire-version", "text": "too old"})
    assert collector.answers(101.0) == []
    assert collector.connection.refusal == {"slug": "wire-version", "text": "too old"}
    assert not collector.connection.send(Head(wire.OPEN, 5), b"{}")
    now, waits = 101.0, []
    for _ in range(10):
        last_greeting_s = collector.connection.last_greeting_s
        while collector.connection.last_greeting_s == last_greeting_s:
            now += 0.5
            collector.connection.greet(now)
        waits.append(now - max(last_greeting_s, 101.0))
    assert waits == sorted(waits)
    assert waits[0] <= 2 * GREET_S
    assert waits[-1] == REFUSED_GREET_S
    collector.connection.note_collector(4711)  # another process has the collector's lock
    collector.connection.greet(now + GREET_S)
    assert collector.connection.last_greeting_s == now + GREET_S
    collector.send_answer(Head(wire.WELCOME), {**WELCOME, "collector": "c2"})
    assert len(collector.answers(now + 2)) == 1
    assert collector.connection.refusal is None


def test_a_refusal_of_another_message_is_an_ordinary_answer(collector: FakeCollector) -> None:
    collector.send_answer(Head(wire.WELCOME), WELCOME)
    collector.answers(100.0)
    collector.send_answer(Head(wire.REFUSE, 5, wire.RECORDS), {"slug": "bad-record"})
    ((head, body),) = collector.answers(100.0)
    assert (head.uid, body) == (5, {"slug": "bad-record"})
    assert collector.connection.refusal is None


def test_nothing_is_sent_to_a_collector_of_an_unknown_version(collector: FakeCollector) -> None:
    collector.send_answer(Head(wire.WELCOME), {**WELCOME, "wire": 999})
    assert collector.answers(100.0) == []
    assert collector.connection.refusal is not None
    assert "999" in collector.connection.refusal["text"]
    assert not collector.connection.send(Head(wire.OPEN, 5), b"{}")


@pytest.mark.parametrize(
    "frames",
    [
        (b"",),
        (b"x" * 7, b"{}"),
        (wire.pack(Head(wire.ACK, 5)), b"{"),
        (wire.pack(Head(wire.ACK, 5)), b"[1]"),
        (wire.pack(Head(wire.ACK, 5)), b"[" * 100_000),
        (wire.pack(Head(wire.ACK, 5)), b"\xff"),
        (wire.pack(Head(wire.ACK, 5)), b"{}", b"one more"),
        (wire.pack(Head(wire.ACK, 5)),),
    ],
    ids=range(8),
)
def test_an_invalid_answer_is_skipped(collector: FakeCollector, frames: tuple[bytes, ...]) -> None:
    collector.send_answer(Head(wire.WELCOME), WELCOME)
    collector.answers(100.0)
    collector.router.send_multipart([collector.peer, *frames])
    collector.send_answer(Head(wire.ACK, 5, wire.OPEN))
    answers: list[tuple[Head, dict[str, Any]]] = []
    while not answers:
        answers = collector.answers(101.0)
    assert [head.uid for head, _ in answers] == [5]
    assert collector.connection.refusal is None
    assert collector.connection.is_accepting(101.0)
