"""The channel that a job writes, read as its layout describes.

Tests shim/channel/memory.py.
"""

import errno
import fcntl
import itertools
import json
import mmap
import os
import resource
import signal
import threading

import pytest
from fakes.our_code import ours
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tfprof.formats import layout
from tfprof.formats.layout import WORD
from tfprof.shim import libc, own_os
from tfprof.shim.channel import memory, ring
from tfprof.shim.channel.ring import Channel, ChannelError


def test_a_new_channel_identifies_its_process_and_has_no_ring(channel, reader):
    assert (reader.word("uid"), reader.word("pid"), reader.word("launch")) == (77, os.getpid(), 5)
    assert os.fstat(channel._fd).st_size == layout.RING_AT
    assert reader.word("ring_size") == 0
    assert os.get_inheritable(channel._fd) is False


def test_a_record_comes_back_as_it_was_put(channel, reader):
    assert channel.put(layout.RUN_METADATA, b"data", 3, 4, 5, 6, 7, 8, 9)
    (record,) = reader.take().records
    assert record == (layout.RUN_METADATA, 9, 1, 3, 4, 5, 6, 7, 8, b"data")


def test_the_ring_is_sealed_against_any_change_of_size(channel):
    channel.put(layout.GRAPH, b"")
    for size in (layout.RING_AT, layout.RING_AT + 2 * layout.RING_MIN):
        with pytest.raises(PermissionError):
            os.ftruncate(channel._fd, size)
    size_seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    assert fcntl.fcntl(channel._fd, fcntl.F_GET_SEALS) & size_seals == size_seals


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(sizes=st.lists(st.integers(0, layout.RING_MIN // 3), max_size=30))
def test_records_of_any_size_wrap_and_none_is_torn(channel, reader, sizes):
    for number, size in enumerate(sizes):
        data = bytes([number % 251]) * size
        assert channel.put(layout.XSPACE, data)
        assert reader.take().records[-1].data == data


def test_a_record_without_room_is_dropped_whole_and_counted(channel, reader):
    assert channel.put(layout.GRAPH, b"x" * (layout.RING_MIN - 2 * layout.RECORD.size - 10))
    assert channel.put(layout.GRAPH, b"x" * 10)
    assert not channel.put(layout.GRAPH, b"")
    assert not channel.put(layout.GRAPH, b"y" * 100)
    assert (reader.word("dropped_records"), reader.word("dropped_bytes")) == (2, 2 * layout.RECORD.size + 100)
    assert [record.seq for record in reader.take().records] == [1, 2]
    assert channel.put(layout.GRAPH, b"y" * 100)
    assert reader.take().records[-1].seq == 3


def test_a_record_larger_than_the_ring_is_refused(channel, reader):
    assert channel.data_max == layout.RING_MIN - layout.RECORD.size
    for _ in range(2):
        assert not channel.put(layout.GRAPH, b"x" * (channel.data_max + 1))
    (record,) = reader.take().records
    assert json.loads(record.data)["slug"] == "record-too-large"
    assert reader.word("dropped_records") == 2
    assert channel.put(layout.GRAPH, b"x" * (channel.data_max - 5000))


def test_a_record_in_a_large_ring_is_bounded_too(monkeypatch):
    monkeypatch.setattr(layout, "RECORD_MAX", layout.RING_MIN)
    large = Channel(7, 9, 4 * layout.RING_MIN)
    assert large.data_max == layout.RING_MIN - layout.RECORD.size
    large.abandon()


@pytest.mark.parametrize("tail", [1, 2**63, 2**64 - 1])
def test_an_impossible_tail_only_drops_records(channel, reader, tail):
    reader.set_word("tail", tail)
    assert not channel.put(layout.GRAPH, b"x")


def test_a_file_that_replaced_the_channel_at_its_descriptor_is_not_grown(channel, tmp_path):
    other = os.open(tmp_path / "theirs", os.O_RDWR | os.O_CREAT)
    os.dup2(other, channel._fd)
    os.close(other)
    assert not channel.put(layout.GRAPH, b"x")
    assert channel.grow()[0] == "channel-closed"
    assert channel.words[WORD["ring_error"]] == errno.EBADF
    assert os.fstat(channel._fd).st_size == 0


def test_without_memory_for_the_ring_records_are_dropped(channel):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous_handler = signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # SIGXFSZ would end this process
    resource.setrlimit(resource.RLIMIT_FSIZE, (layout.RING_AT, limits[1]))
    try:
        assert not channel.put(layout.GRAPH, b"x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous_handler)
    assert channel.ring_problem[0] == "channel-memory"
    assert channel.words[WORD["ring_error"]] == errno.EFBIG
    assert not channel.put(layout.GRAPH, b"x")


@pytest.mark.parametrize("call", ["create", "memory"])
def test_an_error_quotes_the_refusal_of_the_system(monkeypatch, call):
    @ours
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(own_os.os, {"create": "memfd_create", "memory": "posix_fallocate"}[call], refuse)
    with pytest.raises(ChannelError, match="Operation not permitted") as caught:
        Channel(1, 2, layout.RING_MIN)
    assert caught.value.slug == {"create": "memfd-refused", "memory": "channel-memory"}[call]


def test_an_old_kernel_gets_no_newer_flag(monkeypatch):
    tried_flags = []

    @ours
    def old_kernel(name, flags):
        tried_flags.append(flags)
        if flags & 8:  # MFD_NOEXEC_SEAL
            raise OSError(22, "Invalid argument")
        return os.open(os.devnull, os.O_RDWR)

    monkeypatch.setattr(own_os.os, "memfd_create", old_kernel)
    os.close(memory.create("name"))
    assert tried_flags == [11, 3]


def test_records_of_many_threads_are_all_stored(channel, reader):
    def work(number):
        for step in range(200):
            assert channel.put(layout.XSPACE, bytes([number]) * number, step, thread=number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = reader.take().records
    assert [record.seq for record in records] == list(range(1, 1601))
    assert all(record.data == bytes([record.thread]) * record.thread for record in records)


def test_refusals_are_records(channel, reader):
    assert channel.report("slug", "what and why")
    (record,) = reader.take().records
    assert (record.kind, record.data) == (layout.REFUSED, b'{"slug": "slug", "text": "what and why"}')


def test_an_exception_that_is_pending_while_memory_is_unmapped_reaches_the_job():
    def handler(_number, _frame):
        raise TimeoutError("theirs")

    fd = memory.create("test")
    os.ftruncate(fd, mmap.PAGESIZE)
    mapped = [ring._mapping(fd, mmap.PAGESIZE)]
    os.close(fd)
    # No Python code runs from the signal to the finalizer.
    calls = itertools.chain(map(libc.plain.kill, [os.getpid()], [signal.SIGUSR1]), map(list.clear, [mapped]))
    previous_handler = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError, match="theirs"):
            any(calls)
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)
    assert mapped == []
    with open("/proc/self/maps") as maps:
        assert "memfd:test" not in maps.read()
