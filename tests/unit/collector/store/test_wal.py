import errno
import os
import struct
import zlib

import pyarrow as pa
import pytest
from fakes import random_rows
from tfprof.collector.errors import StoreError
from tfprof.collector.store import wal
from tfprof.collector.store.schema import JOB_TABLES
from tfprof.collector.store.wal import Log


def ops(first, count=3):
    return random_rows.table("ops", [random_rows.op(first + number, number) for number in range(count)])


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path / "wal-000000.log")
    yield log
    log.close()


def test_an_append_is_read_back_unchanged(log):
    tables = {"ops": ops(0), "traces": random_rows.traces(0, 3), "names": random_rows.device_names()}
    log.append(wal.encode(tables, 3, 17))
    contents = log.read()
    assert {name: contents.table(name) for name in tables} == tables
    assert [(append.about, append.last) for append in contents.appends] == [(3, 17)]


def test_appends_follow_each_other(log):
    for number in range(3):
        log.append(wal.encode({"ops": ops(number)}, 3, number))
    contents = log.read()
    assert contents.table("ops") == pa.concat_tables([ops(0), ops(1), ops(2)])
    assert contents.end == log.size == log.path.stat().st_size


def test_an_append_without_rows_still_counts(log):
    log.append(wal.encode({"ops": ops(0, 0)}, 5, 9))
    assert [(append.batches, append.about, append.last) for append in log.read().appends] == [([], 5, 9)]


def test_all_tables_can_be_stored(log):
    tables = {name: random_rows.table(name, [{}, {}]) for name in JOB_TABLES}
    log.append(wal.encode(tables, 0, 0))
    contents = log.read()
    assert {name: contents.table(name) for name in tables} == tables


def test_the_layout_is_the_documented_one():
    data = b"".join(wal.encode({"traces": random_rows.traces(0, 1)}, 3, 4))
    length, crc, table, flags, reserved, about, last = struct.unpack_from("<IIHHIQQ", data)
    assert (length, table, flags, reserved, about, last) == (
        len(data) - 32,
        list(JOB_TABLES).index("traces"),
        0,
        0,
        3,
        4,
    )
    assert length % 8 == 0
    assert crc == zlib.crc32(data[8:])
    batch = pa.ipc.read_record_batch(pa.py_buffer(data[32:]), JOB_TABLES["traces"])
    assert pa.Table.from_batches([batch]) == random_rows.traces(0, 1)


def test_a_log_truncated_anywhere_holds_only_complete_appends(log):
    ends = [log.size]
    for number in range(3):
        log.append(wal.encode({"ops": ops(number), "traces": random_rows.traces(number, 1)}, 3, number + 1))
        ends.append(log.size)
    data = log.path.read_bytes()
    for size in range(0, len(data), 7):
        contents = wal.decode(data[:size], log.path)
        complete_count = sum(end <= size for end in ends[1:])
        assert len(contents.appends) == complete_count
        assert contents.end == (ends[complete_count] if size >= ends[0] else 0)


def test_a_changed_byte_ends_the_log_before_its_append(log):
    log.append(wal.encode({"ops": ops(0)}, 3, 1))
    first_end = log.size
    log.append(wal.encode({"ops": ops(1), "names": random_rows.device_names()}, 3, 2))
    data = log.path.read_bytes()
    for position in range(first_end, len(data), 5):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        contents = wal.decode(bytes(damaged), log.path)
        assert (len(contents.appends), contents.end) == (1, first_end)


def test_a_log_whose_first_bytes_never_reached_the_disk_is_empty(tmp_path):
    for data in (b"", b"TFPW", b"TFPWAL\x01", b"\0" * 8, b"\0" * 4096):
        assert wal.decode(data, tmp_path) == (tmp_path, [], 0, wal.WAL_VERSION)


def test_a_file_that_is_not_a_log_is_refused(tmp_path):
    with pytest.raises(StoreError, match="not a write-ahead log") as caught:
        wal.decode(b"PAR1" * 10, tmp_path / "x")
    assert caught.value.slug == "store-damaged"


def test_a_log_of_another_version_is_refused_with_all_versions(tmp_path):
    with pytest.raises(StoreError, match=r"version 9, .* reads versions 1 and 2") as caught:
        wal.decode(struct.pack("<6sH", b"TFPWAL", 9), tmp_path / "x")
    assert caught.value.slug == "store-version"


def test_an_invalid_batch_is_damage(log):
    log.append([wal._frame(0, 0, 3, 1, b"nonsense"), b"nonsense"])
    with pytest.raises(StoreError, match="wal-000000") as caught:
        log.read().table("ops")
    assert caught.value.slug == "store-damaged"


def test_a_log_continues_after_its_last_append(log, tmp_path):
    log.append(wal.encode({"ops": ops(0)}, 3, 1))
    end = log.size
    with log.path.open("ab") as file:
        file.write(b"torn")
    reopened = Log(log.path, end)
    reopened.append(wal.encode({"ops": ops(1)}, 3, 2))
    assert [append.last for append in reopened.read().appends] == [1, 2]
    reopened.close()


class Disk:
    """A disk with room for ``room`` more bytes. A broken disk cannot truncate a file."""

    def __init__(self, monkeypatch, room, is_broken=False):
        self.room, self.is_broken = room, is_broken
        self._pwrite, self._ftruncate = os.pwrite, os.ftruncate
        monkeypatch.setattr(os, "pwritev", lambda fd, pieces, at: self.write(fd, b"".join(pieces), at))
        monkeypatch.setattr(os, "pwrite", self.write)
        monkeypatch.setattr(os, "ftruncate", self.truncate)

    def write(self, descriptor, data, at):
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = self._pwrite(descriptor, bytes(data[: self.room]), at)
        self.room -= count
        return count

    def truncate(self, descriptor, size):
        if self.is_broken:
            raise OSError(errno.EIO, "Input/output error")
        self._ftruncate(descriptor, size)


@pytest.mark.parametrize("room", [0, 1, 31, 33, 500])
def test_a_full_disk_leaves_the_log_as_it_was(log, monkeypatch, room):
    log.append(wal.encode({"ops": ops(0)}, 3, 1))
    before = log.path.read_bytes()
    disk = Disk(monkeypatch, room)
    with pytest.raises(StoreError, match="No space left") as caught:
        log.append(wal.encode({"ops": ops(1)}, 3, 2))
    assert caught.value.slug == "store-full"
    assert log.path.read_bytes() == before
    disk.room = 1 << 20
    log.append(wal.encode({"ops": ops(1)}, 3, 2))
    assert [append.last for append in log.read().appends] == [1, 2]


def test_a_partly_written_append_is_cut_off_before_the_next_append(log, monkeypatch):
    disk = Disk(monkeypatch, 2000, is_broken=True)
    pieces = wal.encode({"traces": random_rows.traces(0, 1), "ops": ops(0), "names": random_rows.device_names()}, 3, 1)
    with pytest.raises(StoreError):
        log.append(pieces)
    disk.room = 1 << 20
    with pytest.raises(StoreError, match="Input/output") as caught:
        log.append(wal.encode({"traces": random_rows.traces(5, 1)}, 3, 1))
    assert caught.value.slug == "store-unwritable"
    assert log.read().appends == []
    disk.is_broken = False
    log.append(wal.encode({"traces": random_rows.traces(5, 1)}, 3, 1))
    assert wal.decode(log.path.read_bytes(), log.path).end == log.path.stat().st_size


def test_a_write_in_many_pieces_is_one_append(log):
    batches = [random_rows.table("traces", [{"trace": number}]).to_batches()[0] for number in range(1500)]
    log.append(wal.encode({"traces": pa.Table.from_batches(batches)}, 3, 1))
    contents = log.read()
    assert (len(contents.appends), contents.table("traces").num_rows) == (1, 1500)
