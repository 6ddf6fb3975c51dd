"""Sent data is kept until it is acked, and is sent again otherwise."""

import json
import os
from collections.abc import Iterator
from itertools import pairwise

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent.channels import ChannelReader, InvalidChannelError
from tfprof.agent.transport import message_queue as module
from tfprof.agent.transport.message_queue import MessageQueue, Outbox
from tfprof.formats import wire

ROOM = 1 << 30


class Line:
    """Keeps the sent messages; takes none unless ``works``."""

    def __init__(self) -> None:
        self.sent: list[tuple[wire.Head, bytes]] = []
        self.works = True

    def __call__(self, head: wire.Head, body: bytes) -> bool:
        if self.works:
            self.sent.append((head, body))
        return self.works

    def of(self, kind: int) -> list[tuple[int, int]]:
        return [(head.first, head.last) for head, _ in self.sent if head.type == kind]


@pytest.fixture
def writer() -> Iterator[ChannelWriter]:
    made = ChannelWriter()
    yield made
    made.close()


@pytest.fixture
def box(writer: ChannelWriter) -> Iterator[Outbox]:
    channel = ChannelReader(os.dup(writer.fd))
    made = Outbox(channel)
    made.opens.put({"uid": "x"}, 1)
    yield made
    channel.close()


def test_the_tail_moves_with_the_ack_and_not_before(writer, box) -> None:
    line = Line()
    writer.put(b"one")
    writer.put(b"two")
    box.pump(100.0, line, ROOM)
    assert line.of(wire.OPEN) == [(0, 1)]
    assert line.of(wire.RECORDS) == [(1, 2)]
    assert writer.word("tail") == 0
    box.note_acked(wire.RECORDS, 2)
    assert writer.word("tail") == writer.word("head")
    assert box.is_drained


def test_spans_are_sent_before_the_records_of_their_steps(writer, box) -> None:
    line = Line()
    writer.put_span(1)
    writer.put(b"one")
    box.pump(100.0, line, ROOM)
    assert [head.type for head, _ in line.sent] == [wire.OPEN, wire.SPANS, wire.RECORDS]
    box.note_acked(wire.SPANS, 1)
    assert writer.word("span_tail") == 1


def test_data_that_follows_soon_is_sent_together(writer, box) -> None:
    line = Line()
    for second in range(5):
        writer.put(b"step")
        writer.put_span(second + 1)
        box.pump(100.0 + second, line, ROOM)
    assert line.of(wire.RECORDS) == [(1, 1), (2, 3), (4, 5)]
    assert line.of(wire.SPANS) == [(1, 1), (2, 3), (4, 5)]


def test_data_is_sent_at_once_when_the_ring_fills_or_the_job_has_ended(writer, box) -> None:
    line = Line()
    for part in (b"first", b"x" * (writer.ring // 4), b"last"):
        writer.put(part)
        box.pump(100.0, line, ROOM)
    assert line.of(wire.RECORDS) == [(1, 1), (2, 2)]
    assert box.is_moving
    assert box.wants_answers
    box.note_acked(wire.RECORDS, 2)
    assert not box.wants_answers
    box.end()
    box.pump(100.0, line, ROOM)
    assert line.of(wire.RECORDS)[-1] == (3, 3)
    assert box.wants_answers


def test_nothing_is_sent_before_the_identity(writer, box) -> None:
    line = Line()
    line.works = False
    writer.put(b"one")
    box.pump(100.0, line, ROOM)
    line.works = True
    box.pump(100.1, line, ROOM)
    assert [head.type for head, _ in line.sent] == [wire.OPEN, wire.RECORDS]


def test_unacked_data_is_read_and_sent_again_after_the_identity(writer, box) -> None:
    line = Line()
    writer.put(b"one")
    box.pump(100.0, line, ROOM)
    writer.put(b"two")
    box.rewind()
    box.pump(101.0, line, ROOM)
    assert [head.type for head, _ in line.sent] == [wire.OPEN, wire.RECORDS] * 2
    assert line.of(wire.RECORDS) == [(1, 1), (1, 2)]
    box.note_acked(wire.RECORDS, 1)
    assert writer.word("tail") == 0
    box.note_acked(wire.RECORDS, 2)
    assert writer.word("tail") == writer.word("head")


def test_after_an_ack_of_a_part_the_rest_is_in_flight(writer, box, monkeypatch) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    line = Line()
    for _ in range(3):
        writer.put(b"x" * 40)
    box.pump(100.0, line, ROOM)
    assert line.of(wire.RECORDS) == [(1, 1), (2, 2), (3, 3)]
    box.note_acked(wire.RECORDS, 2)
    assert writer.word("tail") == 2 * 96
    assert not box.is_drained


def test_the_data_in_flight_is_limited_by_the_window(writer, box, monkeypatch) -> None:
    monkeypatch.setattr(module, "WINDOW_BYTES", 1000)
    line = Line()
    for _ in range(20):
        writer.put(b"x" * 144)
    box.end()
    for second in range(5):
        box.pump(100.0 + second, line, ROOM)
    assert box.records.in_flight == 1000
    box.note_acked(wire.RECORDS, 5)
    box.pump(106.0, line, ROOM)
    assert line.of(wire.RECORDS)[-1] == (6, 10)


def test_after_a_stall_everything_is_sent_again_a_second_later(writer, box) -> None:
    line = Line()
    writer.put(b"one")
    box.pump(100.0, line, ROOM)
    box.stalled({"slug": "store-full", "text": "no room"}, 100.1)
    assert box.pump(101.0, line, ROOM) == 0
    assert box.stall["slug"] == "store-full"
    box.pump(101.2, line, ROOM)
    assert line.of(wire.RECORDS) == [(1, 1), (1, 1)]
    box.note_acked(wire.RECORDS, 1)
    assert box.stall is None


def test_after_a_silence_everything_is_sent_again_with_growing_delay(writer, box) -> None:
    line = Line()
    writer.put(b"one")
    times = []
    for tenth in range(600):
        before = len(line.of(wire.RECORDS))
        box.pump(100.0 + tenth / 10, line, ROOM)
        times += [tenth / 10] * (len(line.of(wire.RECORDS)) - before)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert 3 <= len(gaps) <= 5
    assert gaps == sorted(gaps)
    assert gaps[0] >= module.SILENCE_S


def test_a_refused_message_is_dropped_and_counted(writer, box) -> None:
    line = Line()
    writer.put(b"one")
    box.pump(100.0, line, ROOM)
    box.note_refused(wire.RECORDS, 1)
    assert box.refused == 1
    assert box.is_drained


def test_a_broken_channel_is_reported_and_not_read_again(writer, box) -> None:
    line = Line()
    writer.put(b"one")
    writer.set(head=1 << 50)
    with pytest.raises(InvalidChannelError):
        box.pump(100.0, line, ROOM)
    box.give_up(InvalidChannelError("a ring that cannot be"))
    box.pump(101.0, line, ROOM)
    (event,) = [json.loads(body) for head, body in line.sent if head.type == wire.EVENT]
    assert (event["slug"], event["text"], event["count"]) == ("bad-channel", "a ring that cannot be", 1)
    assert box.is_drained


def test_only_the_newest_counters_are_kept_and_events_are_kept_in_order() -> None:
    line = Line()
    newest = MessageQueue(wire.COUNTERS, 1, 1)
    for value in range(5):
        newest.put({"value": value})
    newest.pump(line)
    assert [json.loads(body) for _, body in line.sent] == [{"value": 4}]
    line.sent.clear()
    events = MessageQueue(wire.EVENT, 1, 3)
    for value in range(5):
        events.put({"value": value})
    assert events.dropped == 2
    events.pump(line)
    assert [json.loads(body)["value"] for _, body in line.sent] == [2, 3, 4]
    events.note_acked(line.sent[0][0].last)
    events.rewind()
    events.pump(line)
    assert [json.loads(body)["value"] for _, body in line.sent] == [2, 3, 4, 3, 4]


def test_numbers_grow_over_restarts_of_the_agent() -> None:
    line = Line()
    for _ in range(3):
        queue = MessageQueue(wire.EVENT, 1, 3)
        queue.put({})
        queue.put({})
        queue.pump(line)
    numbers = [head.last for head, _ in line.sent]
    assert numbers == sorted(set(numbers))
