"""Segments: whole messages come back as they were; nothing else of a file is believed."""

import os
from pathlib import Path

import pytest
from fakes.odd_files import ODD_FILES
from tfprof.agent.spool import segment
from tfprof.agent.spool.segment import DamagedError, SegmentReader
from tfprof.formats import wire
from tfprof.formats.errors import VersionError
from tfprof.formats.wire import Head

MESSAGES = [
    (Head(wire.OPEN, 7, 0, 0, 1), b'{"uid": "7"}'),
    (Head(wire.RECORDS, 7, 0, 1, 2), b"\0" * 100),
    (Head(wire.CLOSE, 7, 0, 1, 1), b""),
]
DATA = segment.header() + b"".join(segment.packed(*message) for message in MESSAGES)


def read_all(path: Path) -> tuple[list[tuple[Head, bytes]], str]:
    """Return the messages of a segment, and why the rest cannot be read."""
    reader = SegmentReader(str(path))
    messages, at = [], segment.HEADER.size
    try:
        while (message := reader.read(at)) is not None:
            messages.append((message.head, message.body))
            at = message.end
    except DamagedError as error:
        return messages, error.args[0]
    finally:
        reader.close()
    return messages, ""


def test_messages_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(DATA)
    assert read_all(path) == (MESSAGES, "")


def test_of_a_cut_segment_the_whole_messages_are_read_and_the_rest_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "s"
    ends = [len(segment.packed(*message)) for message in MESSAGES]
    starts = [segment.HEADER.size + sum(ends[:number]) for number in range(len(MESSAGES) + 1)]
    for size in range(segment.HEADER.size, len(DATA)):
        path.write_bytes(DATA[:size])
        whole = sum(size >= start for start in starts[1:])
        messages, reason = read_all(path)
        assert messages == MESSAGES[:whole]
        assert (f"last {size - starts[whole]} bytes" in reason) == (size != starts[whole])


def test_a_changed_byte_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s"
    for at in range(segment.HEADER.size, len(DATA)):
        path.write_bytes(DATA[:at] + bytes([DATA[at] ^ 0x40]) + DATA[at + 1 :])
        messages, reason = read_all(path)
        assert messages == MESSAGES[: len(messages)]
        assert reason


@pytest.mark.parametrize("kind", ODD_FILES)
def test_what_is_no_segment_is_not_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    ODD_FILES[kind](path)
    with pytest.raises(DamagedError):
        SegmentReader(str(path))


def test_a_segment_of_another_user_is_not_read(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "s"
    path.write_bytes(DATA)
    user_id = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user_id + 1)
    with pytest.raises(DamagedError, match="not a regular file of this user's"):
        SegmentReader(str(path))


def test_a_segment_of_another_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(DATA[:8] + b"\2" + DATA[9:])
    with pytest.raises(VersionError, match="spool version 2"):
        SegmentReader(str(path))


def test_only_numbers_are_names_of_segments(tmp_path: Path) -> None:
    for name in (segment.name(12), segment.name(3), "lock", "12.segment", "0000000004.segment.tmp", "x"):
        (tmp_path / name).touch()
    assert segment.list_numbers(str(tmp_path)) == [3, 12]
