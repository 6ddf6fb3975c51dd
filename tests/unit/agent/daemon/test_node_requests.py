"""Requests of another host: each command ends in bounded time, with a bounded reply."""

import json
import sys
import time
from collections.abc import Callable

import pytest
from fakes.polling import until
from tfprof.agent.daemon import node_requests
from tfprof.agent.daemon.node_requests import RUNNING_MAX, NodeRequests
from tfprof.commands import daemons
from tfprof.formats import requests, wire
from tfprof.formats.errors import TfprofError
from tfprof.formats.orders import Giver
from tfprof.formats.requests import Reply, Request, reply_of
from tfprof.formats.wire import Head

PS = Request(requests.PS, Giver("ada", "head", 1))


class Agent:
    """The requests to an agent. Each of its commands runs a ``script``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, script: str, refusal: TfprofError | None = None) -> None:
        monkeypatch.setattr(daemons, "isolated_command", lambda *_words: [sys.executable, "-c", script])
        self.replies: dict[int, Reply] = {}
        self.is_connected = True
        self.requests = NodeRequests("tcp://head:7199", self._send, lambda _request: refusal)

    def _send(self, head: Head, body: bytes) -> bool:
        assert (head.type, head.about, len(body) <= requests.REPLY_MAX) == (wire.REPLY, wire.ASK, True)
        if self.is_connected:
            self.replies[head.last] = reply_of(json.loads(body))
        return self.is_connected

    def ask(self, number: int = 1, request: Request = PS) -> None:
        self.requests.take(Head(wire.ASK, 0, 0, 0, number), request.document(), time.monotonic())

    def reply(self, number: int = 1) -> Reply:
        def has_reply() -> bool:
            self.requests.check(time.monotonic())
            return number in self.replies

        until(has_reply)
        assert not self.requests.has_pending
        return self.replies[number]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Agent]:
    return lambda *arguments: Agent(monkeypatch, *arguments)


def test_the_output_and_the_status_of_the_command_are_the_reply(agent: Callable[..., Agent]) -> None:
    asked = agent("import sys; print('{\"a\": \"\\\\u001b\"}'); print('why', file=sys.stderr); sys.exit(3)")
    asked.ask()
    assert asked.reply() == Reply(3, '{"a":"\\u001b"}', "why\n")


def test_a_command_without_an_end_is_ended(agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(requests.LIMITS_S, requests.PS, 0.3)
    monkeypatch.setattr(requests, "END_S", 0.3)
    asked = agent("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    asked.ask()
    assert asked.reply().slug == "command-timeout"


def test_endless_output_is_no_reply(agent: Callable[..., Agent]) -> None:
    asked = agent("while True: print('x' * 10000)")
    asked.ask()
    assert asked.reply().slug == "reply-too-large"


def test_output_that_json_makes_too_large_is_no_reply(agent: Callable[..., Agent]) -> None:
    asked = agent("import sys; sys.stdout.buffer.write(b'\\x01' * 1_000_000)")
    asked.ask()
    assert asked.reply().slug == "reply-too-large"


def test_the_number_of_commands_is_limited(agent: Callable[..., Agent]) -> None:
    asked = agent("import time; time.sleep(60)")
    for number in (*range(1, RUNNING_MAX + 2), 1):
        asked.ask(number)
    assert {number: reply.slug for number, reply in asked.replies.items()} == {RUNNING_MAX + 1: "agent-busy"}
    processes = [running.process for running in asked.requests._running.values()]
    asked.requests.close()
    assert all(process.wait(10) for process in processes)


def test_a_refused_or_invalid_request_starts_nothing(agent: Callable[..., Agent]) -> None:
    asked = agent("", TfprofError("not here", "remote-orders"))
    asked.ask()
    assert (asked.reply().slug, asked.reply().text) == ("remote-orders", "not here")
    asked.requests.take(Head(wire.ASK, 0, 0, 0, 2), {"command": "rm"}, 0.0)
    assert asked.reply(2).slug == "bad-request"


def test_a_reply_waits_for_the_connection_but_not_forever(
    agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_requests, "SEND_S", 0.3)
    asked = agent("print('{}')")
    asked.is_connected = False
    asked.ask()

    def is_over() -> bool:
        asked.requests.check(time.monotonic())
        return not asked.requests.has_pending

    until(is_over)
    assert asked.replies == {}
