"""Orders to jobs of nodes, with real sockets and keys, and nodes that lie."""

import contextlib
import json

import pytest
import zmq
from fakes.listening_collector import UID
from tfprof.collector.ingest import order_routes
from tfprof.commands import key_files
from tfprof.formats import orders, wire
from tfprof.formats.orders import Giver, Order, OrderAnswer
from tfprof.formats.wire import Head

ORDER = Order(orders.TRACE, Giver("ann", "head", 42), steps=10)
BODY = json.dumps(ORDER.document()).encode()
OBEYED = OrderAnswer(UID, orders.OBEYED, kind="run", step=5)
FORGED = OrderAnswer(UID, orders.REFUSED, "forged", "forged")
NUMBER = 99


def agent_of(head, node="node1", uid=UID, *, versions=wire.SUPPORTED_VERSIONS, **kwargs):
    """Return an agent on ``node`` that has greeted and opened job ``uid``."""
    agent = head.node(head.add(node), **kwargs)
    head.greet(agent, versions)
    assert head.open(agent, uid)[0].type == wire.ACK
    return agent


def order(head, client, number=NUMBER, uid=UID):
    client.send(Head(wire.ORDER, uid, 0, 0, number), BODY)


def answer(agent, values, number=NUMBER):
    agent.send(Head(wire.ANSWER, values.uid, wire.ORDER, 0, number), json.dumps(values.document()).encode())


def answer_to(head, client):
    """Return the next answer to ``client``, with the number of its order."""
    answer_head, body = head.next_message(client, wire.ANSWER)
    return answer_head.last, orders.answer_of(answer_head.uid, body)


def is_handled(head, agent, uid):
    """Make sure that everything that ``agent`` has sent before is handled."""
    return head.ask(agent, Head(wire.COUNTERS, uid, 0, 1, 1)) is not None


def test_an_order_reaches_the_agent_on_the_node_and_its_answers_come_back(head):
    agent, other = agent_of(head), agent_of(head, "node2", uid=2)
    clients = [head.connect(), head.connect()]
    for number, client in enumerate(clients, NUMBER):
        order(head, client, number)
    assert {head.next_message(agent, wire.ORDER)[0].last for _ in clients} == {NUMBER, NUMBER + 1}
    answer(agent, FORGED, NUMBER + 1)
    answer(agent, OBEYED)
    assert [answer_to(head, client) for client in clients] == [(NUMBER, OBEYED), (NUMBER + 1, FORGED)]
    answer(agent, OBEYED._replace(state=orders.ENDED))
    assert answer_to(head, clients[0])[1].state == orders.ENDED
    assert other.receive(0.01) is None


@pytest.mark.parametrize("liar", ["another node", "another job", "an agent of the head", "without a key", "oversized"])
def test_no_other_peer_can_answer_an_order(head, liar):
    agent, client = agent_of(head), head.connect()
    other = agent_of(head, "node2", uid=2)
    local, stranger = head.connect(), head.node(None)
    head.open(local, uid=3)
    order(head, client)
    head.next_message(agent, wire.ORDER)
    if liar == "another node":
        answer(other, FORGED)
        assert is_handled(head, other, 2)
    elif liar == "another job":
        answer(agent, FORGED._replace(uid=2))
    elif liar == "an agent of the head":
        answer(local, FORGED)
        assert is_handled(head, local, 3)
    elif liar == "without a key":
        with contextlib.suppress(zmq.Again):  # ZeroMQ may have ended the connection already
            answer(stranger, FORGED)
    else:
        body = json.dumps({**FORGED.document(), "more": "x" * orders.BODY_MAX}).encode()
        refusal = head.ask(agent, Head(wire.ANSWER, UID, wire.ORDER, 0, NUMBER), body)
        assert refusal[0][:3] == (wire.REFUSE, UID, wire.ANSWER)
    answer(agent, OBEYED)
    assert answer_to(head, client) == (NUMBER, OBEYED)


def test_a_node_that_takes_the_connection_of_another_gets_no_orders_and_cannot_answer(head):
    agent, client = agent_of(head, name=b"same"), head.connect()
    order(head, client)
    head.next_message(agent, wire.ORDER)
    head.agents.remove(agent)
    agent.close()
    key, thief = head.add("node2"), None
    for _ in range(200):  # until the collector has noticed that the connection has ended
        thief = head.node(key, name=b"same")
        answer(thief, FORGED)
        if head.ask(thief, Head(wire.OPEN, 2, 0, 0, 1), turns=5) is not None:
            break
        head.agents.remove(thief)
        thief.close()
    assert 2 in head.jobs.open
    head.greet(thief)
    order(head, client)
    assert answer_to(head, client)[1].slug == "no-agent"
    assert thief.receive(0.01) is None


def test_a_node_whose_key_was_revoked_gets_no_orders_and_cannot_answer(head):
    agent, client = agent_of(head), head.connect()
    order(head, client)
    head.next_message(agent, wire.ORDER)
    key_files.change_nodes("node1", None)
    answer(agent, FORGED)
    assert head.next_message(agent, wire.REFUSE)[1]["slug"] == "key-revoked"
    order(head, client)
    refusal = answer_to(head, client)[1]
    assert (refusal.slug, refusal.is_temporary) == ("key-revoked", False)
    assert "tfprof keys add node1" in refusal.text
    assert agent.receive(0.01) is None


def test_a_silent_agent_gets_no_orders_until_it_is_heard(head, monkeypatch):
    agent, client = agent_of(head), head.connect()
    with monkeypatch.context() as patch:
        patch.setattr(order_routes, "SILENT_S", -1.0)
        order(head, client)
        refusal = answer_to(head, client)[1]
    assert (refusal.slug, refusal.is_temporary) == ("no-agent", True)
    assert "silent" in refusal.text
    order(head, client)
    assert head.next_message(agent, wire.ORDER)[0].last == NUMBER


def test_an_order_to_an_agent_that_has_left_is_refused(head):
    agent, client = agent_of(head), head.connect()
    head.agents.remove(agent)
    agent.close()
    for number in range(1, 200):  # until the collector has noticed that the connection has ended
        order(head, client, number)
        head.receiver.turn(5)
        if message := client.receive(0.02):
            break
    assert orders.answer_of(UID, message[1]).slug == "no-agent"


def test_an_agent_that_knows_no_orders_is_named(head):
    agent_of(head, versions=[1])
    client = head.connect()
    order(head, client)
    refusal = answer_to(head, client)[1]
    assert (refusal.slug, refusal.is_temporary) == ("unknown-version", False)
    assert "the agent on node1 speaks wire version 1" in refusal.text


def test_an_order_to_a_node_without_a_key_is_passed_on(make_head):
    head = make_head(is_encrypted=False)
    agent, client = head.node(None), head.connect()
    head.greet(agent)
    head.open(agent)
    order(head, client)
    assert head.next_message(agent, wire.ORDER)[1] == ORDER.document()
