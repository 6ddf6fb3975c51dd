"""What a collector remembers of agents."""

import json

import pytest
from tfprof.collector.errors import FormatError
from tfprof.collector.ingest.peers import PEERS_MAX, RELEASE_MAX, Peers
from tfprof.formats.version import WIRE_VERSION


def greet(peers: Peers, name: bytes, node: str | None = None, **values: object) -> dict[str, object]:
    _, body = peers.greet(name, node, memoryview(json.dumps({"host": "h", **values}).encode()))
    answer: dict[str, object] = json.loads(body)
    return answer


def test_a_greeting_says_what_the_agent_is() -> None:
    peers = Peers({"collector": "c1"})
    answer = greet(peers, b"a", "node7", wire=[WIRE_VERSION], requests=True, version="9" * 99)
    assert answer == {"collector": "c1", "wire": WIRE_VERSION}
    assert peers.by_connection[b"a"] == ("node7", WIRE_VERSION, "node7", False, True, "9" * RELEASE_MAX)
    assert greet(peers, b"old") == {"collector": "c1"}
    assert peers.by_connection[b"old"].is_old


@pytest.mark.parametrize("values", [{"host": ""}, {"host": 7}, {"wire": 7}, {"wire": ["1"]}])
def test_invalid_greetings_are_refused_and_nobody_is_remembered(values: dict[str, object]) -> None:
    peers = Peers({})
    with pytest.raises(FormatError):
        greet(peers, b"a", **values)
    assert not peers.by_connection


def test_a_connection_is_that_of_the_node_that_was_verified() -> None:
    peers = Peers({})
    greet(peers, b"a", "node7")
    peers.note_heard(b"a", "node7")
    assert peers.welcome_unknown(b"a", "node7") == []
    peers.note_heard(b"a", "node8")  # it took the name of the other one's connection
    assert not peers.heard_s
    assert len(peers.welcome_unknown(b"a", "node8")) == 1
    assert peers.by_connection[b"a"].host == "node8"


def test_an_unknown_agent_is_welcomed_once_and_the_oldest_is_forgotten() -> None:
    peers = Peers({})
    for number in range(PEERS_MAX + 1):
        assert len(peers.welcome_unknown(b"%d" % number, None)) == 1
    assert peers.welcome_unknown(b"%d" % PEERS_MAX, None) == []
    assert len(peers.by_connection) == len(peers.heard_s) == PEERS_MAX
    assert len(peers.welcome_unknown(b"0", None)) == 1
