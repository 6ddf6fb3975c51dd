"""The spool keeps messages in order, within its bounds, and tells what is safe on the disk.

Tests agent/spool/segment_writer.py, agent/spool/spooled_jobs.py.
"""

import errno
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.odd_files import ODD_FILES
from tfprof.agent.spool import segment
from tfprof.agent.spool import spool as module
from tfprof.agent.spool.segment import SegmentReader
from tfprof.agent.spool.spool import Spool
from tfprof.formats import wire
from tfprof.formats.errors import TfprofError
from tfprof.formats.wire import Head

NAME = "c0ffee-node1"
LIMIT = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "spools"


@pytest.fixture
def spool(root: Path) -> Iterator[Spool]:
    new_spool = Spool(str(root), NAME, LIMIT)
    yield new_spool
    new_spool.close()


@pytest.fixture
def small_segments(monkeypatch) -> None:
    monkeypatch.setattr(segment, "SEGMENT_BYTES", 1000)


def opening(uid: int, generation: int = 1) -> tuple[Head, bytes]:
    return Head(wire.OPEN, uid, 0, 0, generation), b"{}"


def records(uid: int, first: int, last: int | None = None) -> tuple[Head, bytes]:
    return Head(wire.RECORDS, uid, 0, first, last or first), b"r" * 500


def samples(number: int, *uids: int) -> tuple[Head, bytes]:
    body = {"t_ns": 1, "host": {}, "jobs": {f"{uid:016x}": {"threads": 1} for uid in uids}}
    return Head(wire.SAMPLES, 0, 0, number, number), json.dumps(body).encode()


def content(spool: Spool) -> list[list[tuple[Head, bytes]]]:
    """Return the messages of each segment, and remove all."""
    segments = []
    while (path := spool.first_path()) is not None:
        reader, at, messages = SegmentReader(path), segment.HEADER.size, []
        while (message := reader.read(at)) is not None:
            messages.append((message.head, message.body))
            at = message.end
        reader.close()
        segments.append(messages)
        spool.remove_first()
    return segments


def heads(spool: Spool) -> list[list[tuple[int, int, int]]]:
    return [[(head.type, head.uid, head.last) for head, _ in messages] for messages in content(spool)]


def test_messages_are_told_once_when_they_are_safe(spool: Spool) -> None:
    assert spool.put(*opening(7))
    assert spool.put(*records(7, 1))
    assert [head.type for head in spool.sync()] == [wire.OPEN, wire.RECORDS]
    assert spool.sync() == []
    spool.put(*records(7, 2))
    spool.first_path()  # ends the segment
    assert [head.last for head in spool.sync()] == [2]
    assert heads(spool) == [[(wire.OPEN, 7, 1), (wire.RECORDS, 7, 1), (wire.RECORDS, 7, 2)]]
    assert len(spool) == spool.size == 0
    assert spool.oldest_ns is None


def test_files_are_private_whatever_the_umask(root: Path) -> None:
    mask = os.umask(0)
    try:
        spool = Spool(str(root), NAME, LIMIT)
        spool.put(*opening(7))
        spool.close()
    finally:
        os.umask(mask)
    modes = {path.relative_to(root).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
    assert modes == {
        ".": 0o700,
        f"{NAME}-1": 0o700,
        f"{NAME}-1/lock": 0o600,
        f"{NAME}-1/{segment.name(1)}": 0o600,
    }


@pytest.mark.usefixtures("small_segments")
def test_each_segment_opens_its_jobs_and_no_job_after_its_end(spool: Spool) -> None:
    spool.put(*opening(7))
    spool.put(*opening(8))
    for number in range(1, 4):
        spool.put(*records(7, number))
    spool.put(*samples(1, 7, 8, 9))
    spool.put(Head(wire.CLOSE, 8, 0, 1, 1), b"{}")
    spool.put(*samples(2, 7, 8))
    for number in range(4, 6):
        spool.put(*records(7, number))
    spool.put(*samples(3, 7, 8))
    segments = content(spool)
    opened = [[head.uid for head, _ in messages if head.type == wire.OPEN] for messages in segments]
    assert opened == [[7, 8], [7, 8], [7], [7]]
    for messages in segments:
        known_uids = {0}
        for head, _ in messages:
            known_uids |= {head.uid} if head.type == wire.OPEN else set()
            assert head.uid in known_uids
    sampled = [
        json.loads(body)["jobs"] for messages in segments for head, body in messages if head.type == wire.SAMPLES
    ]
    assert [[int(uid, 16) for uid in jobs] for jobs in sampled] == [[7, 8], [7, 8], [7]]


def test_the_next_agent_finds_what_the_last_one_wrote_before_its_own(root: Path) -> None:
    killed = Spool(str(root), NAME, LIMIT)
    killed.put(*opening(7))
    killed.put(*records(7, 1))
    os.close(killed._locks.pop())  # as the end of the process does
    spool = Spool(str(root), NAME, LIMIT)
    assert spool.size == killed.size
    spool.put(*opening(8))
    assert heads(spool) == [[(wire.OPEN, 7, 1), (wire.RECORDS, 7, 1)], [(wire.OPEN, 8, 1)]]
    spool.close()


def test_agents_that_share_a_name_have_folders_of_their_own_and_the_last_one_sends_all(root: Path) -> None:
    first, second = (Spool(str(root), NAME, LIMIT) for _ in range(2))
    first.put(*opening(7))
    second.put(*opening(8))
    assert first.size == second.size
    first.close()
    second.close()
    last = Spool(str(root), NAME, LIMIT)
    assert sorted(heads(last)) == [[(wire.OPEN, 7, 1)], [(wire.OPEN, 8, 1)]]
    last.close()
    agents = [Spool(str(root), NAME, LIMIT) for _ in range(module.FOLDERS_MAX)]
    with pytest.raises(TfprofError, match="other agents use all"):
        Spool(str(root), NAME, LIMIT)
    for agent in agents:
        agent.close()


@pytest.mark.parametrize("kind", sorted(ODD_FILES.keys() - {"folder", "unreadable"}))
def test_an_odd_second_folder_does_not_stop_the_first_one(kind: str, root: Path) -> None:
    Spool(str(root), NAME, LIMIT).close()
    ODD_FILES[kind](root / f"{NAME}-2")
    spool = Spool(str(root), NAME, LIMIT)
    assert spool.put(*opening(7))
    spool.close()


def test_the_limit_holds_and_room_comes_back_with_delivery(spool: Spool) -> None:
    spool.put(*opening(7))
    number = 1
    while spool.put(*records(7, number)):
        number += 1
    assert LIMIT - 1000 < spool.size <= LIMIT
    assert spool.failure is not None
    assert spool.failure["slug"] == "spool-full"
    assert len(spool.sync()) == number
    assert not spool.put(*records(7, number))  # until RETRY_S has passed
    assert len(heads(spool)[0]) == number
    spool._retry_s = 0.0
    assert spool.put(*records(7, number))
    assert spool.failure is None


def test_the_last_of_the_disk_is_left_to_others(spool: Spool, monkeypatch) -> None:
    monkeypatch.setattr(module, "FREE_SHARE", 1.0)
    monkeypatch.setattr(module, "FREE_BYTES", 1 << 60)
    assert not spool.put(*opening(7))
    assert spool.failure is not None
    assert spool.failure["slug"] == "spool-full"


@pytest.mark.parametrize("written", [False, True])
def test_a_full_disk_leaves_whole_messages_and_is_tried_again(spool: Spool, monkeypatch, written: bool) -> None:
    spool.put(*opening(7))
    spool.put(*records(7, 1))

    def write_a_part(fd: int, data: memoryview, at: int) -> int:
        if len(data) < 500 or not written:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:100], at)

    write = os.pwrite
    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "pwrite", write_a_part)
        assert not spool.put(*records(7, 2))
    assert spool.failure == {"slug": "spool", "text": f"cannot write in {spool._folder}: No space left on device"}
    assert [head.type for head in spool.sync()] == [wire.OPEN, wire.RECORDS]
    spool._retry_s = 0.0
    assert spool.put(*records(7, 2))
    assert heads(spool) == [
        [(wire.OPEN, 7, 1), (wire.RECORDS, 7, 1)],
        [(wire.OPEN, 7, 1), (wire.RECORDS, 7, 2)],
    ]


def test_what_the_disk_loses_is_not_called_safe(spool: Spool, monkeypatch) -> None:
    spool.put(*opening(7))
    spool.sync()
    spool.put(*records(7, 1))

    def fail(_fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken_disk:
        broken_disk.setattr(os, "fdatasync", fail)
        assert spool.sync() == []
    assert spool.failure is not None
    spool._retry_s = 0.0
    assert spool.put(*records(7, 1))
    assert [(head.type, head.last) for head in spool.sync()] == [(wire.RECORDS, 1)]
    assert heads(spool) == [[(wire.OPEN, 7, 1)], [(wire.OPEN, 7, 1), (wire.RECORDS, 7, 1)]]


@pytest.mark.parametrize("kind", ODD_FILES)
def test_odd_files_with_the_name_of_a_segment_stay_and_are_told(kind: str, root: Path) -> None:
    Spool(str(root), NAME, LIMIT).close()
    path = root / f"{NAME}-1" / segment.name(5)
    ODD_FILES[kind](path)
    spool = Spool(str(root), NAME, LIMIT)
    assert [rejected for rejected, _ in spool.rejected] == [str(path)]
    assert spool.size == 0
    spool.put(*opening(7))
    assert heads(spool) == [[(wire.OPEN, 7, 1)]]
    spool.close()
    assert os.path.lexists(path)


@pytest.mark.parametrize("place", ["", f"{NAME}-1", f"{NAME}-1/lock"])
@pytest.mark.parametrize("kind", sorted(ODD_FILES.keys() - {"sparse", "deep"}))
def test_odd_folders_and_locks_are_refused(kind: str, place: str, root: Path) -> None:
    path = root / place
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    ODD_FILES[kind](path)
    if kind == "folder" and not place.endswith("lock"):
        path.chmod(0o755)
    if kind == "unreadable" and place.endswith("lock") and os.geteuid() == 0:
        pytest.skip("root reads it")
    with pytest.raises(TfprofError):
        Spool(str(root), NAME, LIMIT)


def test_a_disk_without_room_for_a_header_leaves_no_file(spool: Spool, monkeypatch) -> None:
    def fail(_fd: int, _data: memoryview, _at: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "pwrite", fail)
        for _ in range(3):
            spool._retry_s = 0.0
            assert not spool.put(*opening(7))
    assert os.listdir(spool._folder) == ["lock"]
    assert len(spool) == 0


def test_a_job_that_has_ended_meanwhile_is_not_opened_by_its_samples(spool: Spool) -> None:
    spool.put(*opening(7))
    heads(spool)
    spool.forget_jobs()
    spool.put(*opening(8))
    spool.put(*samples(1, 7, 8))
    messages = content(spool)[0]
    assert [head.uid for head, _ in messages if head.type == wire.OPEN] == [8]
    assert list(json.loads(messages[-1][1])["jobs"]) == [f"{8:016x}"]


def test_counters_of_a_job_are_kept_now_and_then(spool: Spool, monkeypatch) -> None:
    results = []
    for number, now in enumerate((100.0, 101.0, 140.0), 1):
        with monkeypatch.context() as clock:
            clock.setattr(time, "monotonic", lambda now=now: now)
            results.append(spool.put(Head(wire.COUNTERS, 7, 0, number, number), b"{}"))
    assert results == [True, False, True]
