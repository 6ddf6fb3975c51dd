"""Data is kept until it is acked, and is sent again if no ack arrives."""

import json
import os
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent.channels import ChannelReader
from tfprof.agent.rings import InvalidChannelError
from tfprof.agent.transport import message_queue as module
from tfprof.agent.transport.message_queue import MessageQueue, Outbox
from tfprof.agent.transport.resending import SILENCE_S
from tfprof.formats import layout, wire

ROOM = 1 << 30


class FakeConnection:
    """Keeps the sent messages; accepts none unless ``works``."""

    def __init__(self) -> None:
        self.sent: list[tuple[wire.Head, bytes]] = []
        self.works = True

    def __call__(self, head: wire.Head, body: bytes) -> bool:
        if self.works:
            self.sent.append((head, body))
        return self.works

    def ranges(self, kind: int) -> list[tuple[int, int]]:
        return [(head.first, head.last) for head, _ in self.sent if head.type == kind]


@pytest.fixture
def writer() -> Iterator[ChannelWriter]:
    new_writer = ChannelWriter()
    yield new_writer
    new_writer.close()


@pytest.fixture
def outbox(writer: ChannelWriter) -> Iterator[Outbox]:
    channel = ChannelReader(os.dup(writer.fd))
    new_outbox = Outbox(channel)
    new_outbox.opens.put({"uid": "x"}, 1)
    yield new_outbox
    channel.close()


def test_the_tail_moves_with_the_ack_and_not_before(writer, outbox) -> None:
    connection = FakeConnection()
    writer.put(b"one")
    writer.put(b"two")
    outbox.send_due(100.0, connection, ROOM)
    assert connection.ranges(wire.OPEN) == [(0, 1)]
    assert connection.ranges(wire.RECORDS) == [(1, 2)]
    assert writer.word("tail") == 0
    outbox.note_acked(wire.RECORDS, 2)
    assert writer.word("tail") == writer.word("head")
    assert outbox.is_drained


def test_spans_are_sent_before_the_records_of_their_steps(writer, outbox) -> None:
    connection = FakeConnection()
    writer.put_span(1)
    writer.put(b"one")
    outbox.send_due(100.0, connection, ROOM)
    assert [head.type for head, _ in connection.sent] == [wire.OPEN, wire.SPANS, wire.RECORDS]
    outbox.note_acked(wire.SPANS, 1)
    assert writer.word("span_tail") == 1


def test_data_that_follows_soon_is_sent_together(writer, outbox) -> None:
    connection = FakeConnection()
    for second in range(5):
        writer.put(b"step")
        writer.put_span(second + 1)
        outbox.send_due(100.0 + second, connection, ROOM)
    assert connection.ranges(wire.RECORDS) == [(1, 1), (2, 3), (4, 5)]
    assert connection.ranges(wire.SPANS) == [(1, 1), (2, 3), (4, 5)]


def test_data_is_sent_at_once_when_the_ring_fills_or_the_job_has_ended(writer, outbox) -> None:
    connection = FakeConnection()
    for part in (b"first", b"x" * (writer.ring // 4), b"last"):
        writer.put(part)
        outbox.send_due(100.0, connection, ROOM)
    assert connection.ranges(wire.RECORDS) == [(1, 1), (2, 2)]
    assert outbox.is_transferring
    assert outbox.wants_answers
    outbox.note_acked(wire.RECORDS, 2)
    assert not outbox.wants_answers
    outbox.end()
    outbox.send_due(100.0, connection, ROOM)
    assert connection.ranges(wire.RECORDS)[-1] == (3, 3)
    assert outbox.wants_answers


def test_nothing_is_sent_before_the_identity(writer, outbox) -> None:
    connection = FakeConnection()
    connection.works = False
    writer.put(b"one")
    outbox.send_due(100.0, connection, ROOM)
    connection.works = True
    outbox.send_due(100.1, connection, ROOM)
    assert [head.type for head, _ in connection.sent] == [wire.OPEN, wire.RECORDS]


def test_unacked_data_is_read_and_sent_again_after_the_identity(writer, outbox) -> None:
    connection = FakeConnection()
    writer.put(b"one")
    outbox.send_due(100.0, connection, ROOM)
    writer.put(b"two")
    outbox.rewind()
    outbox.send_due(101.0, connection, ROOM)
    assert [head.type for head, _ in connection.sent] == [wire.OPEN, wire.RECORDS] * 2
    assert connection.ranges(wire.RECORDS) == [(1, 1), (1, 2)]
    outbox.note_acked(wire.RECORDS, 1)
    assert writer.word("tail") == 0
    outbox.note_acked(wire.RECORDS, 2)
    assert writer.word("tail") == writer.word("head")


def test_after_an_ack_of_a_part_the_rest_is_in_flight(writer, outbox, monkeypatch) -> None:
    monkeypatch.setattr(module, "SLICE_BYTES", 100)
    connection = FakeConnection()
    for _ in range(3):
        writer.put(b"x" * 40)
    outbox.send_due(100.0, connection, ROOM)
    assert connection.ranges(wire.RECORDS) == [(1, 1), (2, 2), (3, 3)]
    outbox.note_acked(wire.RECORDS, 2)
    assert writer.word("tail") == 2 * 96
    assert not outbox.is_drained


def test_the_number_of_bytes_in_flight_is_limited(writer, outbox, monkeypatch) -> None:
    monkeypatch.setattr(module, "WINDOW_BYTES", 1000)
    connection = FakeConnection()
    for _ in range(20):
        writer.put(b"x" * 144)
    outbox.end()
    for second in range(5):
        outbox.send_due(100.0 + second, connection, ROOM)
    assert outbox.records.in_flight == 1000
    outbox.note_acked(wire.RECORDS, 5)
    outbox.send_due(106.0, connection, ROOM)
    assert connection.ranges(wire.RECORDS)[-1] == (6, 10)


def test_after_a_stall_everything_is_sent_again_a_second_later(writer, outbox) -> None:
    connection = FakeConnection()
    writer.put(b"one")
    outbox.send_due(100.0, connection, ROOM)
    outbox.note_stalled({"slug": "store-full", "text": "no room"}, 100.1)
    assert outbox.send_due(101.0, connection, ROOM) == 0
    assert outbox.stall["slug"] == "store-full"
    outbox.send_due(101.2, connection, ROOM)
    assert connection.ranges(wire.RECORDS) == [(1, 1), (1, 1)]
    outbox.note_acked(wire.RECORDS, 1)
    assert outbox.stall is None


def test_after_a_silence_everything_is_sent_again_with_growing_delay(writer, outbox) -> None:
    connection = FakeConnection()
    writer.put(b"one")
    times = []
    for tenth in range(600):
        before = len(connection.ranges(wire.RECORDS))
        outbox.send_due(100.0 + tenth / 10, connection, ROOM)
        times += [tenth / 10] * (len(connection.ranges(wire.RECORDS)) - before)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert 3 <= len(gaps) <= 5
    assert gaps == sorted(gaps)
    assert gaps[0] >= SILENCE_S


def test_a_refused_message_is_dropped_and_counted(writer, outbox) -> None:
    connection = FakeConnection()
    writer.put(b"one")
    outbox.send_due(100.0, connection, ROOM)
    outbox.note_refused(wire.RECORDS, 1)
    assert outbox.refused == 1
    assert outbox.is_drained


def test_a_broken_channel_is_reported_and_not_read_again(writer, outbox) -> None:
    connection = FakeConnection()
    writer.put(b"one")
    writer.set(head=1 << 50)
    with pytest.raises(InvalidChannelError):
        outbox.send_due(100.0, connection, ROOM)
    outbox.give_up(InvalidChannelError("a ring that cannot be"))
    outbox.send_due(101.0, connection, ROOM)
    (event,) = [json.loads(body) for head, body in connection.sent if head.type == wire.EVENT]
    assert (event["slug"], event["text"], event["count"]) == ("bad-channel", "a ring that cannot be", 1)
    assert outbox.is_drained


def test_only_the_newest_counters_are_kept_and_events_are_kept_in_order() -> None:
    connection = FakeConnection()
    counters = MessageQueue(wire.COUNTERS, 1, 1)
    for value in range(5):
        counters.put({"value": value})
    counters.send_due(connection)
    assert [json.loads(body) for _, body in connection.sent] == [{"value": 4}]
    connection.sent.clear()
    events = MessageQueue(wire.EVENT, 1, 3)
    for value in range(5):
        events.put({"value": value})
    assert events.dropped == 2
    events.send_due(connection)
    assert [json.loads(body)["value"] for _, body in connection.sent] == [2, 3, 4]
    events.note_acked(connection.sent[0][0].last)
    events.rewind()
    events.send_due(connection)
    assert [json.loads(body)["value"] for _, body in connection.sent] == [2, 3, 4, 3, 4]


def numbers_of_an_agent() -> list[int]:
    """Return the numbers of the events of a new agent."""
    connection = FakeConnection()
    queue = MessageQueue(wire.EVENT, 1, 100)
    for _ in range(100):
        queue.put({})
    queue.send_due(connection)
    return [head.last for head, _ in connection.sent]


def test_the_numbers_of_agents_differ_and_each_counts_upwards() -> None:
    numbers = [numbers_of_an_agent() for _ in range(3)]
    assert all(of_agent == list(range(of_agent[0], of_agent[0] + 100)) for of_agent in numbers)
    assert len({number for of_agent in numbers for number in of_agent}) == 300


@pytest.mark.parametrize("seconds", [-(10**7), -3600, -0.1, 0.1, 3600])
def test_messages_of_another_agent_are_never_taken_for_repeated_ones(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    numbers = numbers_of_an_agent()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + int(seconds * 1e9))
    assert not any(wire.is_repeated(number, numbers[-1]) for number in numbers_of_an_agent())
    assert all(wire.is_repeated(number, numbers[-1]) for number in numbers)


def test_what_is_in_the_spool_is_released_and_counts_as_stored_after_its_delivery(writer, outbox) -> None:
    connection = FakeConnection()
    for number in range(1, 4):
        writer.put(b"one")
        writer.put_span(number)
    outbox.send_due(100.0, connection, ROOM)
    outbox.note_spooled(wire.RECORDS, 3)
    outbox.note_spooled(wire.SPANS, 3)
    assert writer.word("tail") == writer.word("head")
    assert writer.word("span_tail") == 3
    assert outbox.is_drained
    assert (outbox.is_spooled, outbox.acked_records, outbox.saved_records) == (True, 0, 3)
    outbox.note_delivered()
    assert (outbox.is_spooled, outbox.acked_records) == (False, 3)


def test_a_ring_is_filling_from_a_quarter_on_and_after_the_end_of_the_job(writer, outbox) -> None:
    quarter = layout.SPAN_COUNT // 4
    for number in range(1, quarter):
        writer.put_span(number)
    assert not outbox.is_filling
    writer.put_span(quarter)
    assert outbox.is_filling
    outbox.spans.acked = quarter
    assert not outbox.is_filling
    outbox.end()
    assert outbox.is_filling
