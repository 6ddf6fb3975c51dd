"""The receiver of messages: greetings, versions, sizes, and what a connection may send.

Tests collector/ingest/sockets.py.
"""

import json
import socket

import pytest
import zmq
from fakes.listening_collector import TurnedCollector
from fakes.run_metadata import run_metadata
from fakes.wire_agent import record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tfprof.collector.errors import StoreError
from tfprof.collector.ingest import receiver as receiver_module
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout, wire
from tfprof.formats.version import WIRE_VERSION
from tfprof.formats.wire import Head

STEP = (layout.RUN_METADATA, run_metadata([b"a:Add"]))


class ReceiverHarness(TurnedCollector):
    """A collector; a test sends messages to it and reads its answers."""

    def turns(self, count=10):
        for _ in range(count):
            self.receiver.turn(20)

    def ask(self, agent, head, body=b""):
        """Send a message, run turns, and return all answers."""
        agent.send(head, body)
        return self.answers(agent)

    def answers(self, agent):
        messages = []
        for _ in range(50):
            self.receiver.turn(10)
            answer = agent.receive(0.01)
            if answer is None and messages:
                break
            messages += [answer] if answer else []
        return messages

    def greet(self, agent):
        self.ask(agent, Head(wire.GREETING), json.dumps({"agent": "a", "host": "h"}).encode())
        return agent


@pytest.fixture
def harness(tmp_path):
    harness = ReceiverHarness(tmp_path)
    yield harness
    harness.close()


def kinds(answers):
    return [head.type for head, _ in answers]


def test_a_greeting_is_answered_by_a_welcome(harness):
    ((head, body),) = harness.ask(harness.connect(), Head(wire.GREETING), b'{"agent": "a", "host": "h"}')
    assert head.type == wire.WELCOME
    assert body == {"collector": "c1"}


def test_a_greeting_with_versions_is_answered_with_the_highest_shared_version(harness):
    body = b'{"agent": "a", "host": "h", "wire": [%d, 900]}' % WIRE_VERSION
    ((head, answer),) = harness.ask(harness.connect(), Head(wire.GREETING), body)
    assert head.type == wire.WELCOME
    assert answer == {"collector": "c1", "wire": WIRE_VERSION}


@pytest.mark.parametrize(
    ("offered", "slug"), [("[900, 800]", "unknown-version"), ("[]", "bad-format"), ("7", "bad-format")]
)
def test_a_greeting_without_a_shared_version_is_refused(harness, offered, slug):
    body = b'{"agent": "a", "host": "h", "wire": ' + offered.encode() + b"}"
    ((head, answer),) = harness.ask(harness.connect(), Head(wire.GREETING), body)
    assert (head.type, head.about, answer["slug"]) == (wire.REFUSE, wire.GREETING, slug)
    if slug == "unknown-version":
        assert "version 900 " in answer["text"]
        assert f"speaks {WIRE_VERSION}" in answer["text"]


def test_an_unknown_agent_is_welcomed_and_must_open_its_job(harness):
    agent = harness.connect()
    agent.records(5, [STEP])
    assert kinds(harness.answers(agent)) == [wire.WELCOME, wire.REOPEN]
    agent.records(5, [STEP])
    assert kinds(harness.answers(agent)) == [wire.REOPEN]


def test_the_first_samples_of_an_unknown_agent_are_answered_only_by_a_welcome(harness):
    agent = harness.connect()
    agent.samples(1, 5, {})
    assert kinds(harness.answers(agent)) == [wire.WELCOME]
    agent.samples(1, 5, {})
    assert kinds(harness.answers(agent)) == [wire.ACK]
    assert (harness.folder / "store" / "hosts" / socket.gethostname()).exists() is False


def test_another_wire_version_is_refused_with_both_versions_named(harness):
    agent = harness.connect()
    head = bytearray(wire.pack(Head(wire.GREETING)))
    head[4:6] = (WIRE_VERSION + 8).to_bytes(2, "little")
    agent.send_raw(bytes(head), b"{}")
    ((answer, body),) = harness.answers(agent)
    assert (answer.type, answer.about, body["slug"]) == (wire.REFUSE, 0, "unknown-version")
    assert f"version {WIRE_VERSION + 8} " in body["text"]
    assert f"speaks {WIRE_VERSION}" in body["text"]


@pytest.mark.parametrize(
    "frames",
    [[b""], [b"x" * 40, b""], [wire.pack(Head(wire.OPEN, 1))], [wire.pack(Head(wire.OPEN, 1)), b"{}", b""]],
)
def test_malformed_messages_are_refused(harness, frames):
    agent = harness.connect()
    agent.send_raw(*frames)
    assert kinds(harness.answers(agent)) == [wire.REFUSE]
    assert harness.stats.refusals == 1


@pytest.mark.parametrize("kind", [0, 9, wire.ACK, wire.WELCOME, 65_535])
def test_an_unknown_type_is_refused(harness, kind):
    ((head, body),) = harness.ask(harness.connect(), Head(kind, 5, 0, 1, 2))
    assert (head.type, head.uid, head.about, head.first, head.last) == (wire.REFUSE, 5, kind, 1, 2)
    assert body["slug"] == "bad-format"


def test_a_refusal_names_the_message_and_the_job_continues(harness):
    agent = harness.greet(harness.connect())
    harness.ask(agent, Head(wire.OPEN, 5, 0, 0, 1), b"{}")
    ((head, _),) = harness.ask(agent, Head(wire.RECORDS, 5, 0, 1, 1), b"nonsense")
    assert (head.type, head.uid, head.about, head.last) == (wire.REFUSE, 5, wire.RECORDS, 1)
    agent.records(5, [STEP])
    assert kinds(harness.answers(agent)) == [wire.ACK]


def test_a_full_store_stalls_and_the_rows_are_stored_later(harness, monkeypatch):
    agent = harness.greet(harness.connect())
    harness.ask(agent, Head(wire.OPEN, 5, 0, 0, 1), b"{}")
    writer = harness.store.job(5)
    append = writer.append

    def raise_full(*_args):
        raise StoreError("no space", "store-full")

    monkeypatch.setattr(writer, "append", raise_full)
    agent.records(5, [STEP])
    ((head, body),) = harness.answers(agent)
    assert (head.type, head.about, body["slug"]) == (wire.STALL, wire.RECORDS, "store-full")
    assert harness.stats.snapshot(0, 1e12)["stalls"] == 1
    monkeypatch.setattr(writer, "append", append)
    agent.records(5, [STEP])
    ((head, _),) = harness.answers(agent)
    assert (head.type, head.last) == (wire.ACK, 1)
    assert LocalStore(harness.folder / "store").job("last").table("traces").num_rows == 1


def test_a_record_without_data_is_acked(harness):
    agent = harness.greet(harness.connect())
    harness.ask(agent, Head(wire.OPEN, 5, 0, 0, 1), b"{}")
    agent.records(5, [(layout.XSPACE, b"")])
    harness.turns(3)
    assert kinds(harness.answers(agent)) == [wire.ACK]


def test_a_flooding_agent_does_not_delay_the_others(harness):
    flooding_agent, quiet_agent = harness.connect(agent="a1"), harness.connect(agent="a2")
    for agent in (flooding_agent, quiet_agent):
        harness.greet(agent)
    message_count = 900
    for _ in range(message_count):
        flooding_agent.send(Head(wire.RECORDS, 1, 0, 1, 1), b"x" * 1_000)
    quiet_agent.send(Head(wire.GREETING), b'{"host": "h"}')
    while quiet_agent.receive(0.001) is None:
        harness.receiver.turn(10)
    assert harness.stats.messages < message_count


def test_one_turn_handles_a_bounded_number_of_messages(harness):
    agent = harness.greet(harness.connect())
    before = harness.stats.messages
    for _ in range(3 * receiver_module.TURN_MESSAGES):
        agent.send(Head(wire.GREETING), b'{"host": "h"}')
    harness.receiver.turn(10_000)
    assert 0 < harness.stats.messages - before <= receiver_module.TURN_MESSAGES


def test_a_stale_socket_is_replaced(tmp_path):
    (tmp_path / "collector.sock").write_text("")
    harness = ReceiverHarness(tmp_path)
    try:
        assert kinds(harness.ask(harness.connect(), Head(wire.GREETING), b'{"host": "h"}')) == [wire.WELCOME]
    finally:
        harness.close()


heads = st.builds(
    Head, st.integers(0, 140), st.sampled_from([0, 5, 6]), st.just(0), st.integers(0, 9), st.integers(9, 20)
).map(wire.pack)
bodies = st.one_of(
    st.binary(max_size=300),
    st.dictionaries(
        st.sampled_from(["t_ns", "host", "jobs", "state", "slug", "text", "count"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=4,
        ),
    ).map(lambda value: json.dumps(value).encode()),
)


def test_random_messages_do_not_stop_the_receiver(harness):
    agent = harness.greet(harness.connect())
    harness.ask(agent, Head(wire.OPEN, 5, 0, 0, 1), b"{}")

    @settings(max_examples=300, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.one_of(st.binary(max_size=60), heads, bodies), min_size=1, max_size=3)
        | st.tuples(heads, bodies).map(list)
    )
    def send(frames):
        harness.receiver._handle(b"\0peer", [zmq.Frame(frame) for frame in frames])

    send()
    agent.close()
    harness.agents.remove(agent)
    other = harness.connect()
    assert kinds(harness.ask(other, Head(wire.GREETING), b'{"host": "h"}')) == [wire.WELCOME]


def test_truncated_messages_do_not_stop_the_receiver(harness):
    agent = harness.greet(harness.connect())
    harness.ask(agent, Head(wire.OPEN, 5, 0, 0, 1), b"{}")
    agent.records(5, [STEP, STEP])
    harness.receiver.turn(500)
    head = wire.pack(Head(wire.RECORDS, 5, 0, 3, 4))
    body = record(3, *STEP) + record(4, *STEP)
    for cut in range(len(body)):
        harness.receiver._handle(b"\0peer", [zmq.Frame(bytes(head)), zmq.Frame(bytes(body[:cut]))])
    assert harness.stats.refusals == len(body)
    assert harness.store.job(5).acked(wire.RECORDS) == 2


def test_session_records_of_an_agent_of_0_2_0_are_converted(harness):
    old_agent, new_agent = harness.connect(agent="old"), harness.connect(agent="new")
    harness.ask(old_agent, Head(wire.GREETING), json.dumps({"agent": "old", "host": "testhost"}).encode())
    greeting = {"agent": "new", "host": "testhost", "wire": list(wire.SUPPORTED_VERSIONS)}
    harness.ask(new_agent, Head(wire.GREETING), json.dumps(greeting).encode())
    head = layout.XSPACE_HEAD.pack(1_000_000, 1, 0)
    for uid, agent, body, key in (
        (1, old_agent, b"", 1),
        (2, old_agent, b"", 7),
        (3, new_agent, head, 0),
        (4, old_agent, b"\x01" * 8, 1),
    ):
        harness.ask(agent, Head(wire.OPEN, uid, 0, 0, 1), b"{}")
        data = record(1, layout.XSPACE, body, key=key)
        harness.ask(agent, Head(wire.RECORDS, uid, 0, 1, 1), data)
    stored = {job.info.uid: job for job in LocalStore(harness.folder / "store").jobs()}
    assert [stored[uid].table("traces").num_rows for uid in (1, 2, 3, 4)] == [1, 0, 1, 0]
    slugs = {uid: stored[uid].table("events")["slug"].to_pylist() for uid in (2, 4)}
    assert slugs == {2: ["old-session"], 4: ["undecodable"]}


def test_truncated_records_of_an_agent_of_0_2_0_are_refused(harness):
    agent = harness.connect(agent="old")
    harness.ask(agent, Head(wire.GREETING), json.dumps({"agent": "old", "host": "testhost"}).encode())
    harness.ask(agent, Head(wire.OPEN, 1, 0, 0, 1), b"{}")
    data = record(1, layout.XSPACE, b"", key=1)
    for truncated in (data[:-1], data[:10], b"\0" * layout.RECORD.size):
        [(answer, _)] = harness.ask(agent, Head(wire.RECORDS, 1, 0, 1, 1), truncated)
        assert answer.type == wire.REFUSE
