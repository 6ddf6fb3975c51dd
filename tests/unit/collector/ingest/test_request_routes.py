"""A request reaches the agents of the named hosts, and a reply only the client that asked."""

import json
import time
from typing import Any

import pytest
from tfprof.collector.errors import FormatError
from tfprof.collector.ingest.peers import Peer
from tfprof.collector.ingest.request_routes import ROUTES_MAX, Asked, RequestRoutes
from tfprof.formats import requests, wire
from tfprof.formats.orders import Giver
from tfprof.formats.requests import Request
from tfprof.formats.wire import Head

CLIENT = b"\0client"
GIVER = Giver("ada", "head", 1)
PEERS = {
    b"a": Peer("node1", 3, "node1", answers_requests=True, release="0.3.0"),
    b"b": Peer("node2", 3, "node2", answers_requests=True),
    b"B": Peer("node2", 3, "node2", answers_requests=True),
    b"o": Peer("old", 1, "old", is_old=True, release="0.2.0"),
    b"r": Peer("revoked", 3, "revoked", answers_requests=True),
    b"s": Peer("silent", 3, "silent", answers_requests=True),
    b"n": Peer("new", None, "new"),
}


class Routes:
    """The routes of a collector with PEERS; ``now`` is when all but one were heard last."""

    def __init__(self) -> None:
        self.heard_s = dict.fromkeys(PEERS, time.monotonic()) | {b"s": time.monotonic() - 60}
        self.routes = RequestRoutes(PEERS, self.heard_s, lambda node: node != "revoked")

    def ask(self, *hosts: Any, number: int = 1, request: Request | None = None) -> Asked:
        document = {**(request or Request(requests.PS, GIVER)).document(), "hosts": list(hosts)}
        return self.routes.ask(CLIENT, _head(wire.ASK, number), memoryview(json.dumps(document).encode()))

    def reply(self, agent: bytes, node: str, number: int = 1, body: bytes = b"{}") -> list[Any]:
        return self.routes.reply(agent, node, _head(wire.REPLY, number), memoryview(body))


def _head(kind: int, number: int) -> Head:
    return Head(kind, 0, 0, 0, number)


@pytest.mark.parametrize(
    ("hosts", "agents"),
    [
        (["node1"], b"a"),
        (["node*"], b"abB"),
        (["NODE1"], b"a"),
        (["silent", "new", "other"], b""),
        (["node1", "*1"], b"a"),
        ([], b""),
    ],
)
def test_hosts_are_selected_by_pattern(hosts: list[str], agents: bytes) -> None:
    asked = Routes().ask(*hosts)
    assert (b"".join(asked.agents), asked.refused) == (agents, [])


def test_agents_that_cannot_answer_are_named_with_the_reason() -> None:
    asked = Routes().ask("old", "revoked")
    assert [(refused.host, refused.slug) for refused in asked.refused] == [
        ("old", "unknown-version"),
        ("revoked", "key-revoked"),
    ]
    assert "0.2.0" in asked.refused[0].text


def test_a_process_is_looked_for_on_one_host_only() -> None:
    for host in ("node2", "*o*d*", "*e*"):
        asked = Routes().ask(host, request=Request(requests.DOCTOR, GIVER, 7))
        assert (asked.agents, [refused[:2] for refused in asked.refused]) == ([], [(host, "host-ambiguous")])
    assert Routes().ask("node1", request=Request(requests.DOCTOR, GIVER, 7)).agents == [b"a"]


def test_a_reply_counts_once_and_from_the_asked_agent_only() -> None:
    routes = Routes()
    routes.ask("node1")
    _, first = routes.routes.asked(1, [b"a"], [])
    assert json.loads(first) == {"asked": {"61": "node1"}, "refused": []}
    for agent, node, number in ((b"b", "node2", 1), (b"a", "node2", 1), (b"a", "node1", 2)):
        assert routes.reply(agent, node, number) == []
    ((client, (head, body)),) = routes.reply(b"a", "node1", body=b'{"agent": "62"}\n')
    assert (client, head.last, body) == (CLIENT, 1, b'{"agent": "61"}\n{"agent": "62"}\n')
    assert routes.reply(b"a", "node1") == []


def test_an_agent_that_did_not_get_the_request_cannot_answer_it() -> None:
    routes = Routes()
    routes.ask("node*")
    routes.routes.asked(1, [b"b"], [])
    assert routes.reply(b"a", "node1") == []
    assert len(routes.reply(b"b", "node2")) == 1


def test_the_client_learns_of_an_agent_that_falls_silent() -> None:
    routes = Routes()
    routes.ask("node*")
    assert routes.routes.lost() == []
    routes.heard_s[b"b"] -= 60
    ((client, (head, body)),) = routes.routes.lost()
    assert (client, head.last, b"no-answer" in body) == (CLIENT, 1, True)
    assert routes.routes.lost() == []
    assert routes.reply(b"b", "node2") == []


def test_sizes_and_numbers_are_limited() -> None:
    routes = Routes()
    routes.ask("node1")
    ((_, (_, body)),) = routes.reply(b"a", "node1", body=b" " * (requests.REPLY_MAX + 1))
    assert b"reply-too-large" in body
    assert len(body) < 200
    with pytest.raises(FormatError):
        routes.ask("x" * requests.REQUEST_MAX)
    with pytest.raises(FormatError):
        routes.ask(1)
    for number in range(2, ROUTES_MAX + 2):
        routes.ask("node1", number=number)
    assert routes.reply(b"a", "node1") == []
