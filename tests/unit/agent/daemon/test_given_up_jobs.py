"""Files about jobs that were given up: each is sent until it is answered, and then removed."""

from pathlib import Path

import pytest
from tfprof.agent.daemon.given_up_jobs import AGAIN_S, INTERVAL_S, UNANSWERED_MAX, GivenUpJobs
from tfprof.formats import given_up, runtime_dir, wire
from tfprof.formats.wire import Head


class Collector:
    """Takes up to ``room`` messages."""

    def __init__(self, room: int = 1_000) -> None:
        self.room = room
        self.uids: list[int] = []

    def send(self, head: Head, _body: bytes) -> bool:
        assert head.type == wire.GIVEN_UP
        if len(self.uids) < self.room:
            self.uids.append(head.uid)
            return True
        return False


def write(folder: Path, *uids: int) -> GivenUpJobs:
    (folder / runtime_dir.GIVEN_UP).mkdir()
    for uid in uids:
        given_up.write(str(folder), uid, {"name": "a"}, {"state": "ended"})
    return GivenUpJobs(str(folder))


def files(folder: Path) -> int:
    return len(list((folder / runtime_dir.GIVEN_UP).iterdir()))


@pytest.mark.parametrize("answer", [wire.ACK, wire.REFUSE])
def test_an_answer_removes_the_file(tmp_path: Path, answer: int) -> None:
    jobs, collector = write(tmp_path, 7), Collector()
    jobs.send_due(0.0, collector.send)
    jobs.note_answer(Head(wire.STALL, 7, wire.GIVEN_UP))
    jobs.note_answer(Head(answer, 8, wire.GIVEN_UP))
    assert files(tmp_path) == 1
    jobs.note_answer(Head(answer, 7, wire.GIVEN_UP))
    assert files(tmp_path) == 0


def test_an_unanswered_file_is_sent_again_later(tmp_path: Path) -> None:
    jobs, collector = write(tmp_path, 7), Collector()
    for now in (0.0, INTERVAL_S / 2, INTERVAL_S, AGAIN_S - 0.1):
        jobs.send_due(now, collector.send)
    assert collector.uids == [7]
    jobs.send_due(AGAIN_S + INTERVAL_S, collector.send)
    assert collector.uids == [7, 7]


def test_the_number_of_unanswered_messages_is_limited(tmp_path: Path) -> None:
    jobs, collector = write(tmp_path, *range(1, UNANSWERED_MAX + 3)), Collector()
    jobs.send_due(0.0, collector.send)
    jobs.send_due(INTERVAL_S, collector.send)
    assert len(collector.uids) == UNANSWERED_MAX


def test_a_file_that_the_collector_has_no_room_for_is_sent_at_the_next_attempt(tmp_path: Path) -> None:
    jobs, collector = write(tmp_path, 7, 8), Collector(room=1)
    jobs.send_due(0.0, collector.send)
    collector.room = 2
    jobs.send_due(INTERVAL_S, collector.send)
    assert sorted(collector.uids) == [7, 8]


def test_a_damaged_file_is_removed(tmp_path: Path) -> None:
    jobs, collector = write(tmp_path), Collector()
    (tmp_path / runtime_dir.GIVEN_UP / "a.json").write_text("{")
    jobs.send_due(0.0, collector.send)
    assert (files(tmp_path), collector.uids) == (0, [])
