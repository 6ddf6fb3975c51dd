"""The agent's end of the wire: greetings, answers, and refusals that end all sending."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from tfprof.agent.transport.connection import GREET_S, HEARD_S, REFUSED_GREET_S, CollectorConnection
from tfprof.formats import wire
from tfprof.formats.wire import Head

PATIENCE_MS = 20_000
WELCOME = {"collector": "c1", "wire": max(wire.SPOKEN), "pid": 1}


class Line:
    """A link, and a collector's socket at its other end."""

    def __init__(self, place: Path) -> None:
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.bind(f"ipc://{place}/c.sock")
        self.link = CollectorConnection(f"ipc://{place}/c.sock", {"agent": "a", "host": "h"})
        self.peer = b""

    def close(self) -> None:
        self.link.close()
        self.context.destroy(linger=0)

    def heard(self) -> tuple[Head, Any]:
        """Return the next message of the link; it must arrive."""
        assert self.router.poll(PATIENCE_MS)
        self.peer, head, body = self.router.recv_multipart()
        return wire.unpack(head), json.loads(body)

    def is_silent(self) -> bool:
        """Return whether no message has arrived; messages arrive in order."""
        return not self.router.poll(0)

    def greeted(self, now: float) -> None:
        """Make the link greet; wait until it is connected."""
        deadline = 1000
        while not self.router.poll(20):
            self.link._greeted_s = self.link.heard_s = -REFUSED_GREET_S
            self.link.greet(now)
            deadline -= 1
            assert deadline, "no greeting comes"
        self.link._greeted_s = now
        while self.router.poll(20):
            head, body = self.heard()
            assert head.type == wire.GREETING
            assert (body["agent"], body["wire"]) == ("a", list(wire.SPOKEN))

    def say(self, head: Head | bytes, body: bytes | dict[str, Any] = b"", *more: bytes) -> None:
        packed = head if isinstance(head, bytes) else wire.pack(head)
        self.router.send_multipart(
            [self.peer, packed, body if isinstance(body, bytes) else json.dumps(body).encode(), *more]
        )

    def answers(self, now: float) -> list[tuple[Head, dict[str, Any]]]:
        """Return the answers that have arrived; wait for at least one."""
        assert self.link.socket.poll(PATIENCE_MS)
        return list(self.link.answers(now))


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    made.greeted(100.0)
    yield made
    made.close()


def test_nothing_is_sent_before_a_welcome(line: Line) -> None:
    assert not line.link.send(Head(wire.OPEN, 5), b"{}")
    assert not line.link.is_accepting(100.0)
    line.say(Head(wire.WELCOME), WELCOME)
    assert [head.type for head, _ in line.answers(100.5)] == [wire.WELCOME]
    assert line.link.is_accepting(100.5)
    assert line.link.send(Head(wire.OPEN, 5), b"{}")
    assert line.heard()[0].type == wire.OPEN


def test_a_welcome_counts_only_from_another_collector(line: Line) -> None:
    line.say(Head(wire.WELCOME), WELCOME)
    assert len(line.answers(100.0)) == 1
    line.say(Head(wire.WELCOME), WELCOME)
    assert line.answers(101.0) == []
    assert line.link.heard_s == 101.0
    line.say(Head(wire.WELCOME), {**WELCOME, "collector": "c2"})
    assert len(line.answers(102.0)) == 1


def test_a_silent_collector_is_greeted_once_a_second_and_then_counts_as_absent(line: Line) -> None:
    line.say(Head(wire.WELCOME), WELCOME)
    line.answers(100.5)
    line.link.greet(100.5 + GREET_S - 0.01)
    assert line.is_silent()
    line.link.greet(100.5 + GREET_S)
    assert line.heard()[0].type == wire.GREETING
    line.link.greet(100.5 + GREET_S + 0.5)
    assert line.is_silent()
    assert line.link.is_accepting(100.5 + HEARD_S - 0.1)
    assert not line.link.is_accepting(100.5 + HEARD_S)


def test_a_refusal_ends_all_sending_until_a_welcome_and_greetings_become_rare(line: Line) -> None:
    line.say(Head(wire.WELCOME), WELCOME)
    line.answers(100.0)
    line.say(Head(wire.REFUSE, 0, wire.GREETING), {"slug": "wire-version", "text": "too old"})
    assert line.answers(101.0) == []
    assert line.link.refusal == {"slug": "wire-version", "text": "too old"}
    assert not line.link.send(Head(wire.OPEN, 5), b"{}")
    now, waits = 101.0, []
    for _ in range(10):
        before = line.link._greeted_s
        while line.link._greeted_s == before:
            now += 0.5
            line.link.greet(now)
        waits.append(now - max(before, 101.0))
    assert waits == sorted(waits)
    assert waits[0] <= 2 * GREET_S
    assert waits[-1] == REFUSED_GREET_S
    line.link.note_collector(4711)  # another process has the collector's lock
    line.link.greet(now + GREET_S)
    assert line.link._greeted_s == now + GREET_S
    line.say(Head(wire.WELCOME), {**WELCOME, "collector": "c2"})
    assert len(line.answers(now + 2)) == 1
    assert line.link.refusal is None


def test_a_refusal_of_another_message_is_an_ordinary_answer(line: Line) -> None:
    line.say(Head(wire.WELCOME), WELCOME)
    line.answers(100.0)
    line.say(Head(wire.REFUSE, 5, wire.RECORDS), {"slug": "bad-record"})
    ((head, body),) = line.answers(100.0)
    assert (head.uid, body) == (5, {"slug": "bad-record"})
    assert line.link.refusal is None


def test_nothing_is_sent_to_a_collector_of_an_unknown_version(line: Line) -> None:
    line.say(Head(wire.WELCOME), {**WELCOME, "wire": 999})
    assert line.answers(100.0) == []
    assert line.link.refusal is not None
    assert "999" in line.link.refusal["text"]
    assert not line.link.send(Head(wire.OPEN, 5), b"{}")


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
def test_an_invalid_answer_is_skipped(line: Line, frames: tuple[bytes, ...]) -> None:
    line.say(Head(wire.WELCOME), WELCOME)
    line.answers(100.0)
    line.router.send_multipart([line.peer, *frames])
    line.say(Head(wire.ACK, 5, wire.OPEN))
    found: list[tuple[Head, dict[str, Any]]] = []
    while not found:
        found = line.answers(101.0)
    assert [head.uid for head, _ in found] == [5]
    assert line.link.refusal is None
    assert line.link.is_accepting(101.0)
