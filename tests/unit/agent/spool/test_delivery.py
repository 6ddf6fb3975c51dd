"""A spool is delivered in order and once, whatever the collector answers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tfprof.agent.spool import delivery as module
from tfprof.agent.spool import segment
from tfprof.agent.spool.delivery import Delivery
from tfprof.agent.spool.spool import Spool
from tfprof.agent.transport.resending import REOPEN_S, SILENCE_S, STALL_S
from tfprof.formats import wire
from tfprof.formats.errors import VersionError
from tfprof.formats.wire import Head

OPEN, RECORDS, EVENT, CLOSE = wire.OPEN, wire.RECORDS, wire.EVENT, wire.CLOSE
UNKNOWN = {"slug": "foreign-job", "text": "it is of another node"}


class FakeCollector:
    """Takes messages while it ``works``; the test answers them."""

    def __init__(self, folder: Path) -> None:
        self.spool = Spool(str(folder / "spools"), "c-n", 1 << 30)
        self.reports: list[str] = []
        self.sent: list[Head] = []
        self.works = True
        self.now = 100.0
        self.delivery = self.new_delivery()

    def new_delivery(self) -> Delivery:
        return Delivery(self.spool, lambda slug, text: self.reports.append(f"{text} [{slug}]"))

    def send(self, head: Head, _body: bytes) -> bool:
        if self.works:
            self.sent.append(head)
        return self.works

    def put(self, kind: int, uid: int, first: int, last: int = 0) -> None:
        assert self.spool.put(Head(kind, uid, 0, first, last or first), b"x" * 100)

    def turn(self, seconds: float = 0.1) -> list[tuple[int, int, int]]:
        """Let the agent send; return type, job and last number of what has arrived."""
        self.now += seconds
        self.sent.clear()
        self.delivery.send_due(self.now, self.send)
        return [(head.type, head.uid, head.last) for head in self.sent]

    def answer(self, kind: int, uid: int = 7, about: int = 0, last: int = 0) -> None:
        self.delivery.note_answer(Head(kind, uid, about, 0, last), UNKNOWN, self.now)

    def acknowledge(self) -> None:
        for head in list(self.sent):
            self.answer(wire.ACK, head.uid, head.type, head.last)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[FakeCollector]:
    new_collector = FakeCollector(tmp_path)
    yield new_collector
    new_collector.delivery.close()
    new_collector.spool.close()


@pytest.fixture
def two_segments(collector: FakeCollector, monkeypatch) -> list[tuple[int, int, int]]:
    monkeypatch.setattr(segment, "SEGMENT_BYTES", 500)
    for message in ((OPEN, 7, 1), (RECORDS, 7, 1), (RECORDS, 7, 2), (EVENT, 7, 1)):
        collector.put(*message)
    assert len(collector.spool) == 1
    collector.put(OPEN, 8, 1)
    assert len(collector.spool) == 2
    return [(OPEN, 7, 1), (RECORDS, 7, 1), (RECORDS, 7, 2), (EVENT, 7, 1)]


def test_a_segment_follows_when_all_of_the_one_before_is_acked(collector: FakeCollector, two_segments) -> None:
    assert collector.turn() == two_segments
    assert collector.turn() == []
    collector.answer(wire.ACK, about=OPEN, last=1)
    collector.answer(wire.ACK, about=RECORDS, last=2)  # covers record 1, too
    assert collector.turn() == []
    assert len(collector.spool) == 2
    collector.answer(wire.ACK, about=EVENT, last=1)
    assert collector.turn() == [(OPEN, 8, 1)]
    assert len(collector.spool) == 1
    collector.acknowledge()
    assert collector.turn() == []
    assert len(collector.spool) == 0
    assert collector.reports == []


def test_a_job_is_closed_after_all_its_data_is_acked(collector: FakeCollector) -> None:
    for message in ((OPEN, 7, 1), (OPEN, 8, 1), (RECORDS, 7, 1), (CLOSE, 7, 1), (CLOSE, 8, 1)):
        collector.put(*message)
    assert collector.turn() == [(OPEN, 7, 1), (OPEN, 8, 1), (RECORDS, 7, 1)]
    collector.answer(wire.ACK, about=OPEN, last=1)
    assert collector.turn() == []
    collector.answer(wire.ACK, about=RECORDS, last=1)
    assert collector.turn() == [(CLOSE, 7, 1)]
    collector.answer(wire.ACK, 8, about=OPEN, last=1)
    assert collector.turn() == [(CLOSE, 8, 1)]


def test_a_successor_sends_the_segment_again_that_was_not_acked(collector: FakeCollector, two_segments) -> None:
    collector.turn()
    collector.answer(wire.ACK, about=RECORDS, last=2)
    collector.delivery.close()
    collector.delivery = collector.new_delivery()
    assert collector.turn() == two_segments


def test_nothing_is_lost_while_the_connection_takes_nothing(collector: FakeCollector, two_segments) -> None:
    collector.works = False
    assert collector.turn() == []
    collector.works = True
    assert collector.turn() == two_segments


def test_silence_and_stalls_repeat_what_is_not_acked(collector: FakeCollector, two_segments) -> None:
    collector.turn()
    collector.answer(wire.ACK, about=OPEN, last=1)
    assert collector.turn() == []
    assert collector.turn(SILENCE_S + 1) == two_segments[1:]
    assert collector.turn() == []
    assert collector.turn(SILENCE_S + 1) == []
    assert collector.turn(SILENCE_S + 1) == two_segments[1:]
    collector.answer(wire.STALL, about=RECORDS, last=1)
    assert collector.turn(STALL_S / 2) == []
    assert collector.turn(STALL_S) == two_segments[1:]


def test_a_new_collector_gets_the_segment_from_its_start(collector: FakeCollector, two_segments) -> None:
    collector.turn()
    collector.answer(wire.ACK, about=OPEN, last=1)
    collector.delivery.restart()
    assert collector.turn() == two_segments
    collector.answer(wire.ACK, about=OPEN, last=1)
    collector.answer(wire.REOPEN)
    collector.answer(wire.REOPEN)
    assert collector.turn(REOPEN_S / 2) == []
    assert collector.turn(REOPEN_S) == two_segments


def test_a_message_that_never_gets_through_does_not_stop_the_others(collector: FakeCollector, two_segments) -> None:
    for _ in range(module.REOPENS_MAX):
        assert collector.turn(1.0) == two_segments
        collector.answer(wire.ACK, about=OPEN, last=1)
        collector.answer(wire.REOPEN)
    assert collector.turn(1.0) == two_segments
    for _ in two_segments:
        collector.answer(wire.REOPEN)
    assert collector.turn() == [(OPEN, 8, 1)]
    assert len(collector.reports) == len(two_segments)
    assert all("[spool-refused]" in report for report in collector.reports)


def test_a_refused_job_is_told_and_its_messages_are_left_out(collector: FakeCollector, two_segments) -> None:
    del two_segments
    collector.works = True
    collector.delivery.send_due(collector.now, lambda head, _: not collector.sent and collector.send(head, b""))
    collector.answer(wire.REFUSE, about=OPEN, last=1)
    assert collector.turn() == [(OPEN, 8, 1)]
    assert collector.reports == ["messages of job 0000000000000007 in the spool: it is of another node [foreign-job]"]


def test_a_torn_end_is_told_and_the_next_segment_follows(collector: FakeCollector, two_segments) -> None:
    path = collector.spool.first_path()
    assert path is not None
    os.truncate(path, os.stat(path).st_size - 5)
    assert collector.turn() == two_segments[:-1]
    assert collector.turn() == []
    assert collector.turn(SILENCE_S + 1) == two_segments[:-1]
    collector.delivery.restart()
    assert collector.turn() == two_segments[:-1]
    collector.acknowledge()
    assert collector.turn() == [(OPEN, 8, 1)]
    assert len(collector.reports) == 1
    assert "no whole message [spool-damaged]" in collector.reports[0]


def test_a_segment_that_was_replaced_is_skipped(collector: FakeCollector, two_segments) -> None:
    del two_segments
    path = collector.spool.first_path()
    assert path is not None
    os.unlink(path)
    os.mkfifo(path)
    collector.turn()
    assert collector.turn() == [(OPEN, 8, 1)]
    assert "[spool-damaged]" in collector.reports[0]
    assert os.path.lexists(path)


def test_a_segment_of_a_later_release_stays(collector: FakeCollector, two_segments, monkeypatch) -> None:
    path = collector.spool.first_path()
    unpack = wire.unpack

    def unpack_older(data: bytes) -> Head:
        head = unpack(data)
        if head.type == EVENT:
            raise VersionError("wire", 9, 3)
        return head

    monkeypatch.setattr(wire, "unpack", unpack_older)
    assert collector.turn() == two_segments[:-1]
    collector.acknowledge()
    assert collector.turn() == [(OPEN, 8, 1)]
    collector.acknowledge()
    collector.turn()
    assert len(collector.spool) == 0
    assert path is not None
    assert os.path.exists(path)
    assert len(collector.reports) == 1
    assert collector.reports[0].startswith(f"{path} is left alone: wire version 9 is not supported")
    assert collector.reports[0].endswith("[unknown-version]")


def test_the_bytes_in_flight_are_limited_but_a_large_message_passes(collector: FakeCollector, monkeypatch) -> None:
    monkeypatch.setattr(module, "WINDOW_BYTES", 400)
    for number in range(1, 6):
        collector.put(RECORDS, 7, number)
    assert [last for _, _, last in collector.turn()] == [1, 2, 3]
    monkeypatch.setattr(module, "WINDOW_BYTES", 1)
    collector.acknowledge()
    assert [last for _, _, last in collector.turn()] == [4]
