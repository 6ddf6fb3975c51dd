"""A channel is read as it was written, and nothing in it is trusted.

Tests agent/rings.py.
"""

import fcntl
import os
import random
import struct
from collections.abc import Iterator

import pytest
from fakes.channel_writer import ChannelWriter
from hypothesis import given, settings
from hypothesis import strategies as st
from tfprof.agent.channels import ChannelReader, open_file, read_identity
from tfprof.agent.rings import InvalidChannelError
from tfprof.formats import layout
from tfprof.formats.errors import FormatError, VersionError
from tfprof.formats.version import CHANNEL_VERSION


@pytest.fixture
def writer() -> Iterator[ChannelWriter]:
    new_writer = ChannelWriter(launch=7, uid=5)
    yield new_writer
    new_writer.close()


@pytest.fixture
def channel(writer: ChannelWriter) -> Iterator[ChannelReader]:
    reader = ChannelReader(os.dup(writer.fd))
    yield reader
    reader.close()


def texts(ring_slice) -> list[bytes]:
    result, offset = [], 0
    while offset < len(ring_slice.data):
        size = layout.RECORD.unpack_from(ring_slice.data, offset)[0]
        result.append(ring_slice.data[offset + layout.RECORD.size : offset + size])
        offset += size
    return result


def test_the_page_identifies_the_channel(writer, channel) -> None:
    assert (channel.identity.uid, channel.identity.pid, channel.identity.launch) == (5, os.getpid(), 7)
    assert channel.user_id == os.geteuid()
    assert channel.hello()["name"] == "fake.py"


def test_records_are_read_whole_and_numbered(writer, channel) -> None:
    for text in (b"one", b"two", b"three"):
        writer.put(text)
    ring_slice = channel.records.read(0, 1 << 20)
    assert texts(ring_slice) == [b"one", b"two", b"three"]
    assert (ring_slice.first, ring_slice.last, ring_slice.end) == (1, 3, writer.word("head"))


def test_a_slice_ends_at_the_last_record_that_fits_the_limit(writer, channel) -> None:
    for number in range(10):
        writer.put(bytes([number]) * 100)
    ring_slice = channel.records.read(0, 500)
    assert texts(ring_slice) == [bytes([number]) * 100 for number in range(3)]
    assert texts(channel.records.read(ring_slice.end, 500))[0] == b"\x03" * 100


def test_a_record_larger_than_the_limit_is_returned_alone(writer, channel) -> None:
    writer.put(b"x" * 5000)
    writer.put(b"y")
    ring_slice = channel.records.read(0, 1000)
    assert texts(ring_slice) == [b"x" * 5000]
    assert texts(channel.records.read(ring_slice.end, 1000)) == [b"y"]


def test_records_that_wrap_at_the_end_of_the_ring_are_read_whole(writer, channel) -> None:
    position, all_texts = 0, []
    for number in range(40):
        assert writer.put(bytes([number]) * 100_000)
        ring_slice = channel.records.read(position, 1 << 20)
        all_texts += texts(ring_slice)
        position = ring_slice.end
        channel.records.release(position)
    assert all_texts == [bytes([number]) * 100_000 for number in range(40)]
    assert position > 3 * layout.RING_MIN


def test_an_ack_makes_room_for_the_job(writer, channel) -> None:
    while writer.put(b"z" * 10_000):
        pass
    assert writer.word("dropped_records") == 1
    channel.records.release(channel.records.read(0, 1 << 20).end)
    assert writer.put(b"z" * 10_000)


def test_spans_wrap_and_are_numbered_from_one(writer, channel) -> None:
    for ordinal in range(1, layout.SPAN_COUNT + 1):
        assert writer.put_span(ordinal)
    assert not writer.put_span(0)
    ring_slice = channel.spans.read(0, layout.SPAN_COUNT, ended=False)
    assert (ring_slice.first, ring_slice.last) == (1, layout.SPAN_COUNT)
    channel.spans.release(ring_slice.end - 10)
    for ordinal in range(layout.SPAN_COUNT + 1, layout.SPAN_COUNT + 6):
        assert writer.put_span(ordinal)
    next_slice = channel.spans.read(ring_slice.end - 10, layout.SPAN_COUNT, ended=False)
    ordinals = [entry[2] for entry in layout.SPAN.iter_unpack(next_slice.data)]
    assert ordinals == list(range(layout.SPAN_COUNT - 9, layout.SPAN_COUNT + 6))


def test_an_entry_being_filled_counts_only_when_the_job_has_ended(writer, channel) -> None:
    writer.put_span(1)
    layout.SPAN.pack_into(writer.map, layout.SPANS_AT + layout.SPAN_SIZE, 9, 9, 2, 5, 1, 0, 0, 0, 1, 1, 0)
    writer.set(span_open=2)
    assert channel.spans.read(0, layout.SPAN_COUNT, ended=False).last == 1
    ring_slice = channel.spans.read(0, layout.SPAN_COUNT, ended=True)
    assert ring_slice.last == 2
    channel.spans.release(ring_slice.end)
    assert channel.spans.unread(ring_slice.end, ended=True) == 0


def test_counters_have_the_words_and_the_spans_of_each_kind(writer, channel) -> None:
    writer.put_span(1, layout.EPOCH)
    writer.set(traced=3)
    counters = channel.counters()
    assert counters["traced"] == 3
    assert counters["counts"]["epoch"] == 1
    assert counters["counts"]["run"] == 0


def test_the_next_agent_continues_from_the_tails(writer, channel) -> None:
    writer.put(b"one")
    end = channel.records.read(0, 1000).end
    channel.records.release(end)
    channel.spans.release(4)
    next_reader = ChannelReader(os.dup(writer.fd))
    assert (next_reader.records.tail, next_reader.spans.tail) == (end, 4)
    next_reader.close()


def test_the_job_cannot_truncate_an_open_channel(writer, channel) -> None:
    with pytest.raises(PermissionError):
        os.ftruncate(writer.fd, 0)
    assert writer.put(b"it can still grow")


def test_only_the_agents_words_are_written(channel) -> None:
    with pytest.raises(KeyError):
        channel.set_word("head", 1)


def test_another_version_is_refused_and_both_versions_are_named() -> None:
    writer = ChannelWriter(version=99)
    with pytest.raises(VersionError, match=f"99.*{CHANNEL_VERSION}"):
        ChannelReader(os.dup(writer.fd))
    writer.close()


@pytest.mark.parametrize("size", [0, 100, layout.PAGE, layout.RING_AT - 1])
def test_a_channel_that_is_too_short_is_refused(size: int) -> None:
    writer = ChannelWriter(sealed=False)
    os.ftruncate(writer.fd, size)
    fcntl.fcntl(writer.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    with pytest.raises(FormatError):
        ChannelReader(os.dup(writer.fd))
    os.ftruncate(writer.fd, layout.RING_AT)
    writer.close()


def test_a_channel_that_could_be_truncated_is_refused_unread() -> None:
    writer = ChannelWriter(sealed=False)
    fd = os.dup(writer.fd)
    with pytest.raises(InvalidChannelError, match="not sealed"):
        ChannelReader(fd)
    os.ftruncate(writer.fd, 0)
    os.ftruncate(writer.fd, layout.RING_AT)
    writer.close()


def test_a_channel_without_a_uid_is_refused() -> None:
    writer = ChannelWriter(uid=0)
    with pytest.raises(InvalidChannelError, match="without a uid"):
        ChannelReader(os.dup(writer.fd))
    writer.close()


def test_a_file_that_blocks_its_reader_is_not_opened(tmp_path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"):
        open_file(str(tmp_path / "fifo"), os.O_RDONLY)
    with pytest.raises(OSError, match="not a regular file"):
        open_file(str(tmp_path / "fifo"), os.O_RDWR)


def test_a_file_that_is_no_channel_is_refused() -> None:
    fd = os.memfd_create("tfprof", os.MFD_CLOEXEC)
    os.ftruncate(fd, 1 << 20)
    with pytest.raises(InvalidChannelError, match="magic"):
        read_identity(fd)
    with pytest.raises(InvalidChannelError):
        ChannelReader(fd)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)


@pytest.mark.parametrize("words", [{"ring_size": 1 << 40}, {"ring_size": 1}, {"head": 1 << 63}, {"tail": 5}])
def test_impossible_words_are_refused(writer, words: dict[str, int]) -> None:
    writer.put(b"one")
    writer.set(**({"head": 1} if "tail" in words else {}), **words)
    reader = ChannelReader(os.dup(writer.fd))
    with pytest.raises(InvalidChannelError):
        reader.records.read(reader.records.tail, 1 << 20)
    reader.close()


@pytest.mark.parametrize("size", [0, 1, layout.RECORD.size - 1, 1 << 30, 0xFFFFFFFF])
def test_a_record_of_an_impossible_size_is_refused(writer, channel, size: int) -> None:
    writer.put(b"one" * 100)
    os.pwrite(writer.fd, struct.pack("<I", size), layout.RING_AT)
    with pytest.raises(InvalidChannelError):
        channel.records.read(0, 100)


def test_records_out_of_order_are_refused(writer, channel) -> None:
    writer.put(b"one")
    writer.set(records=0)
    writer.put(b"one again")
    with pytest.raises(InvalidChannelError, match="number 1 after number 1"):
        channel.records.read(0, 1000)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff" * 50, b"[" * 4000])
def test_a_hello_that_is_no_object_is_empty(writer, channel, text: bytes) -> None:
    writer.map[layout.HELLO_AT : layout.HELLO_AT + len(text)] = text
    writer.set(hello_size=len(text))
    assert channel.hello() == {}


def test_a_hello_longer_than_its_page_is_not_read(writer, channel) -> None:
    writer.set(hello_size=1 << 40)
    assert channel.hello() == {}


_ANY_WORD = st.one_of(st.integers(0, (1 << 64) - 1), st.sampled_from([0, 1, 56, 4096, layout.RING_MIN, (1 << 64) - 1]))


@settings(max_examples=150)
@given(
    words=st.dictionaries(st.sampled_from(sorted(layout.JOB_WORDS)), _ANY_WORD),
    tails=st.tuples(_ANY_WORD, _ANY_WORD),
    seed=st.integers(0, 1 << 32),
    ended=st.booleans(),
)
def test_any_content_of_a_channel_is_read_in_bounded_time_or_refused(words, tails, seed, ended) -> None:
    writer = ChannelWriter()
    try:
        writer.put(random.Random(seed).randbytes(2000))
        os.pwrite(writer.fd, random.Random(seed + 1).randbytes(300), layout.RING_AT)
        reader = ChannelReader(os.dup(writer.fd))
        writer.set(**words)
        try:
            for read in (
                lambda: reader.records.read(tails[0], 4096),
                lambda: reader.spans.read(tails[1], layout.SPAN_COUNT, ended=ended),
                lambda: reader.records.read(0, 4096),
            ):
                try:
                    ring_slice = read()
                except InvalidChannelError:
                    continue
                assert ring_slice is None or len(ring_slice.data) <= layout.RING_MIN
            reader.hello()
            reader.counters()
        finally:
            reader.close()
    finally:
        writer.close()
