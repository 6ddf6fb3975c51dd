"""Routes of orders through a collector to the job's agent, and of answers to the client."""

import json
import time
from pathlib import Path
from stat import S_IMODE

import pytest
from fakes.listening_collector import TurnedCollector
from fakes.wire_agent import WireAgent
from tfprof.collector.ingest import order_routes
from tfprof.formats import orders, wire
from tfprof.formats.orders import Giver, Order, OrderAnswer
from tfprof.formats.wire import Head

UID = 7
ORDER = Order(orders.TRACE, Giver("ann", "node7", 42), steps=10)
BODY = json.dumps(ORDER.document()).encode()


class ReceiverHarness(TurnedCollector):
    """A collector between agents that have opened a job and clients that give orders."""

    def agent(self, versions: list[int] | None, name: str = "a1", uid: int = UID) -> WireAgent:
        """Return an agent that has sent a greeting and opened job ``uid``.

        The greeting has the wire ``versions``, or none.
        """
        agent = self.connect(agent=name)
        versions_field = {} if versions is None else {"wire": versions}
        self.ask(agent, Head(wire.GREETING), json.dumps({"agent": name, "host": "node9", **versions_field}).encode())
        self.ask(agent, Head(wire.OPEN, uid, 0, 0, 1), b"{}")
        return agent

    def ask(self, peer: WireAgent, head: Head, body: bytes) -> list[tuple[Head, dict[str, object]]]:
        """Send a message, run turns, and return all messages to the peer."""
        peer.send(head, body)
        return self.messages_to(peer)

    def messages_to(self, peer: WireAgent, count_min: int = 0) -> list[tuple[Head, dict[str, object]]]:
        """Run turns and return the messages to the peer; wait for ``count_min`` messages."""
        messages = []
        turns, deadline = 0, time.monotonic() + 20
        while turns < 20 or (len(messages) < count_min and time.monotonic() < deadline):
            turns += 1
            self.receiver.turn(5)
            answer = peer.receive(0.01)
            if answer is not None:
                messages.append(answer)
            elif len(messages) >= max(1, count_min):
                break
        return messages


@pytest.fixture
def harness(tmp_path: Path):
    harness = ReceiverHarness(tmp_path)
    yield harness
    harness.close()


def _order_head(number: int = 99, uid: int = UID) -> Head:
    return Head(wire.ORDER, uid, 0, 0, number)


def test_an_order_reaches_the_agent_and_its_answers_reach_the_client(harness: ReceiverHarness) -> None:
    agent, client, other = harness.agent([*wire.SUPPORTED_VERSIONS]), harness.connect(), harness.connect()
    client.send(_order_head(), BODY)
    other.send(_order_head(100), BODY)
    assert sorted((head, orders.order_of(body)) for head, body in harness.messages_to(agent, 2)) == [
        (_order_head(), ORDER),
        (_order_head(100), ORDER),
    ]
    for number, state in ((99, orders.OBEYED), (99, orders.ENDED), (100, orders.REFUSED)):
        answer = OrderAnswer(UID, state, kind="train", step=5)
        agent.send(Head(wire.ANSWER, UID, wire.ORDER, 0, number), json.dumps(answer.document()).encode())
    states = [orders.answer_of(head.uid, body).state for head, body in harness.messages_to(client, 2)]
    assert states == [orders.OBEYED, orders.ENDED]
    [(head, body)] = harness.messages_to(other, 1)
    assert (head.last, body["state"]) == (100, orders.REFUSED)


def test_an_order_to_a_job_without_an_agent_is_answered_at_once(harness: ReceiverHarness) -> None:
    [(head, body)] = harness.ask(harness.connect(), _order_head(), BODY)
    assert (head.type, head.uid, head.last) == (wire.ANSWER, UID, 99)
    assert orders.answer_of(UID, body).slug == "no-agent"


def test_an_order_to_a_closed_job_is_refused(harness: ReceiverHarness) -> None:
    agent = harness.agent([wire.WIRE_VERSION])
    agent.finish(UID)
    harness.messages_to(agent)
    [(_, body)] = harness.ask(harness.connect(), _order_head(), BODY)
    assert orders.answer_of(UID, body).slug == "job-gone"


@pytest.mark.parametrize("versions", [None, [1]])
def test_an_agent_of_another_version_gets_no_order_and_both_versions_are_named(
    harness: ReceiverHarness, versions
) -> None:
    agent = harness.agent(versions)
    [(_, body)] = harness.ask(harness.connect(), _order_head(), BODY)
    answer = orders.answer_of(UID, body)
    assert answer.slug == "unknown-version"
    assert f"node9 speaks wire version 1, orders need version {wire.version_of(wire.ORDER)}" in answer.text
    assert harness.messages_to(agent) == []


def test_an_agent_that_has_not_greeted_yet_gets_no_order(harness: ReceiverHarness) -> None:
    agent = harness.connect()
    harness.ask(agent, Head(wire.OPEN, UID, 0, 0, 1), b"{}")
    [(_, body)] = harness.ask(harness.connect(), _order_head(), BODY)
    assert orders.answer_of(UID, body).slug == "no-agent"


def test_a_repeated_order_goes_to_the_current_agent(harness: ReceiverHarness) -> None:
    harness.agent([wire.WIRE_VERSION], "first")
    client = harness.connect()
    client.send(_order_head(), BODY)
    successor = harness.agent([wire.WIRE_VERSION], "second")
    client.send(_order_head(), BODY)
    assert [head for head, _ in harness.messages_to(successor)] == [_order_head()]
    answer = OrderAnswer(UID, orders.OBEYED)
    successor.send(Head(wire.ANSWER, UID, wire.ORDER, 0, 99), json.dumps(answer.document()).encode())
    assert len(harness.messages_to(client)) == 1


def test_only_the_agent_of_the_order_can_answer(harness: ReceiverHarness) -> None:
    harness.agent([wire.WIRE_VERSION])
    liar, client = harness.agent([wire.WIRE_VERSION], "liar", uid=8), harness.connect()
    client.send(_order_head(), BODY)
    answer = json.dumps(OrderAnswer(UID, orders.OBEYED).document()).encode()
    harness.receiver.turn(50)
    assert harness.ask(liar, Head(wire.ANSWER, UID, wire.ORDER, 0, 99), answer) == []
    assert harness.messages_to(client) == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        json.dumps({**ORDER.document(), "trace": "x"}).encode(),
        json.dumps({**ORDER.document(), "more": "x" * orders.BODY_MAX}).encode(),
        b"[" * 9999,
    ],
)
@pytest.mark.parametrize("kind", [wire.ORDER, wire.ANSWER])
def test_malformed_orders_and_answers_are_refused_and_not_passed_on(
    harness: ReceiverHarness, kind: int, body: bytes
) -> None:
    agent = harness.agent([wire.WIRE_VERSION])
    [(head, _)] = harness.ask(harness.connect(), Head(kind, UID, 0, 0, 99), body)
    assert (head.type, head.about, head.last) == (wire.REFUSE, kind, 99)
    assert harness.messages_to(agent) == []
    assert harness.stats.failures == 0


def test_the_number_of_routes_is_bounded(harness: ReceiverHarness, monkeypatch) -> None:
    monkeypatch.setattr(order_routes, "ROUTES_MAX", 10)
    harness.agent([wire.WIRE_VERSION])
    for number in range(1, 40):
        client = WireAgent(harness.folder)
        client.send(_order_head(number), BODY)
        harness.receiver.turn(20)
        client.close()
    harness.receiver.turn(50)
    assert len(harness.receiver._orders._routes) <= 10


def test_only_the_user_can_connect_to_the_socket(harness: ReceiverHarness) -> None:
    assert S_IMODE((harness.folder / "collector.sock").stat().st_mode) == 0o600
