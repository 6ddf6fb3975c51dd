"""Which way messages go while a collector on another host is there, away, or stores nothing."""

from pathlib import Path

import pytest
from fakes import node_keys
from tfprof.agent.spool import spooling as module
from tfprof.agent.spool.spool import RETRY_S
from tfprof.agent.spool.spooling import Route, Spooling
from tfprof.commands import key_files
from tfprof.formats import wire
from tfprof.formats.addresses import Endpoint, local_endpoint, remote_endpoint
from tfprof.formats.wire import Head

REMOTE = remote_endpoint("tcp://127.0.0.1:7199")
OPEN = Head(wire.OPEN, 7, 0, 0, 1)
FULL = {"slug": "store-full", "text": "No space left on device"}


class Node:
    """The agent's use of the spool, with a clock of its own; `sent` has what the collector got."""

    def __init__(self, endpoint: Endpoint = REMOTE, key: str = key_files.NO_KEY, limit: int = 1 << 20) -> None:
        self.reports: list[tuple[str, str]] = []
        self.sent: list[Head] = []
        self.now = 100.0
        self.spooling = Spooling(endpoint, key, limit, lambda *report: self.reports.append(report), self.now)

    def turn(
        self, seconds: float = 0.5, *, is_available: bool, has_jobs: bool = True, is_urgent: bool = False
    ) -> tuple[Route, bool]:
        self.now += seconds
        is_new_start = self.spooling.choose(self.now, is_available=is_available, has_jobs=has_jobs, is_urgent=is_urgent)
        self.spooling.durable(self.now, at_once=False)
        if is_available:
            self.spooling.deliver(self.now, self._send)
        return self.spooling.route, is_new_start

    def _send(self, head: Head, _body: bytes) -> bool:
        self.sent.append(head)
        return True

    def put(self, head: Head = OPEN, body: bytes = b"{}") -> bool:
        return self.spooling.send(self._send)(head, body)

    def acknowledge(self) -> bool:
        head = self.sent.pop(0)
        return self.spooling.handle(Head(wire.ACK, head.uid, head.type, head.first, head.last), {}, self.now)


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "tfprof-spool"


def test_an_outage_goes_through_the_spool_and_back(home: Path) -> None:
    node = Node()
    assert node.turn(is_available=True) == (Route.DIRECT, False)
    assert node.turn(module.AWAY_S - 1, is_available=False) == (Route.DIRECT, False)
    assert not home.exists()
    assert node.turn(2, is_available=False) == (Route.SPOOL, True)
    assert node.put()
    assert node.sent == []
    assert node.turn(is_available=True) == (Route.HOLD, False)
    assert not node.put()
    assert node.turn(is_available=True, is_urgent=True) == (Route.SPOOL, False)
    assert node.turn(is_available=True) == (Route.HOLD, False)
    assert node.acknowledge()
    node.turn(is_available=True)
    assert node.turn(is_available=True) == (Route.DIRECT, True)
    node.spooling.close()


def test_a_job_that_has_ended_does_not_wait_long(home: Path) -> None:
    node = Node()
    node.turn(is_available=True, is_urgent=True)
    assert node.turn(module.URGENT_AWAY_S / 2, is_available=False, is_urgent=True) == (Route.DIRECT, False)
    assert node.turn(module.URGENT_AWAY_S, is_available=False, is_urgent=True) == (Route.SPOOL, True)
    assert home.exists()


def test_a_collector_that_stores_nothing_is_away(home: Path) -> None:
    node = Node()
    node.spooling.handle(Head(wire.STALL, 7, wire.RECORDS, 1, 1), FULL, node.now)
    assert node.turn(module.AWAY_S + 1, is_available=True) == (Route.SPOOL, True)
    assert home.exists()
    node.put()
    assert node.spooling.stall(None) == FULL
    node.turn(is_available=True)
    node.acknowledge()
    assert node.spooling.stall(None) is None
    assert [node.turn(is_available=True)[0] for _ in range(2)][-1] is Route.DIRECT


def test_what_an_earlier_agent_left_is_delivered_before_all_else(home: Path) -> None:
    earlier = Node()
    earlier.turn(module.AWAY_S + 1, is_available=False)
    earlier.put()
    earlier.spooling.close()
    node = Node()
    assert not node.spooling.is_empty
    assert node.turn(is_available=True, has_jobs=False) == (Route.HOLD, False)
    assert node.sent == [OPEN]
    assert node.spooling.status()["spool_bytes"] > 0


@pytest.mark.parametrize("endpoint", [local_endpoint("/run/t"), REMOTE])
def test_without_a_remote_collector_or_with_size_0_nothing_is_written(home: Path, endpoint: Endpoint) -> None:
    node = Node(endpoint, limit=1 << 20 if endpoint.socket_file else 0)
    assert node.turn(module.AWAY_S + 1, is_available=False) == (Route.DIRECT, False)
    assert not node.spooling.divert(node.now)
    assert not home.exists()


def test_nothing_is_written_without_a_job(home: Path) -> None:
    assert Node().turn(1000, is_available=False, has_jobs=False) == (Route.DIRECT, False)
    assert not home.exists()


def test_size_0_still_delivers_what_is_there(home: Path) -> None:
    del home
    earlier = Node()
    earlier.turn(module.AWAY_S + 1, is_available=False)
    earlier.put()
    earlier.spooling.close()
    node = Node(limit=0)
    assert node.turn(module.AWAY_S + 1, is_available=False)[0] is Route.HOLD
    node.turn(is_available=True)
    assert node.sent == [OPEN]


def test_a_key_that_comes_late_finds_the_spool_before_anything_is_sent(home: Path) -> None:
    del home
    key = node_keys.add("node1", node_keys.make_collector())
    path = key_files.node_key_path("")
    key_files.write_node_key(path, key)
    earlier = Node(key="")
    earlier.turn(module.AWAY_S + 1, is_available=False)
    earlier.put()
    earlier.spooling.close()
    Path(path).unlink()
    node = Node(key="")
    assert node.spooling.is_empty
    assert (node.spooling.failure or {})["slug"] == "key-file"
    key_files.write_node_key(path, key)
    node.spooling.restart(node.now)
    assert node.turn(is_available=True)[0] is Route.HOLD


def test_a_spool_that_cannot_be_opened_is_told_and_tried_again(home: Path) -> None:
    home.write_text("a file in its place")
    node = Node()
    assert node.turn(module.AWAY_S + 1, is_available=False) == (Route.DIRECT, False)
    assert node.spooling.status()["spool_failure"]["slug"] == "spool"
    home.unlink()
    assert node.turn(RETRY_S + 1, is_available=False) == (Route.SPOOL, True)
    node.spooling.close()


def test_a_full_spool_is_told_until_it_is_empty(home: Path) -> None:
    del home
    node = Node(limit=500)
    node.turn(module.AWAY_S + 1, is_available=False)
    assert node.put()
    assert not node.put(Head(wire.OPEN, 8, 0, 0, 1), b" " * 500)
    assert node.spooling.status()["spool_failure"]["slug"] == "spool-full"
    node.turn(is_available=True)
    node.acknowledge()
    node.turn(is_available=True)
    assert node.turn(is_available=True)[0] is Route.DIRECT
    assert node.spooling.status()["spool_failure"] is None


def test_a_spool_that_could_not_be_opened_is_told_until_the_collector_is_back(home: Path) -> None:
    home.write_text("a file in its place")
    node = Node()
    node.turn(module.AWAY_S + 1, is_available=False)
    assert node.spooling.failure is not None
    node.turn(RETRY_S + 1, is_available=True)
    assert node.spooling.failure is None
