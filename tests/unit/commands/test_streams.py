"""Printing on standard streams: every text is cleaned."""

import contextlib
import fcntl
import io
import os
import select
import struct
import sys
import termios
import unicodedata
from pathlib import Path

import pytest
from tfprof.commands import streams


def test_every_character_that_could_steer_a_terminal_is_replaced() -> None:
    replaced = {character for character in map(chr, range(0x11_0000)) if streams.clean(character) == "?"} - {"?"}
    controls = {c for c in map(chr, range(0x11_0000)) if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}}
    directions = {c for c in map(chr, range(0x11_0000)) if unicodedata.bidirectional(c) in BIDI_CLASSES}
    marks = {"\u061c", "\u200e", "\u200f"}
    assert replaced == controls | directions | marks


#: Embeddings, overrides and isolates, and their ends.
BIDI_CLASSES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def test_a_cleaned_text_has_the_same_length_and_may_keep_characters_of_its_layout() -> None:
    assert streams.clean("a\x1b[31mb\nc\u202ed\udc80") == "a?[31mb?c?d?"
    assert streams.clean("a\tb\x1b\n", kept="\t\n") == "a\tb?\n"
    assert streams.clean("größe … 数 𝄞") == "größe … 数 𝄞"


def test_lines_on_both_streams_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    streams.print_lines(["a\r\nb\x9b2J", "c\td"], kept="\t")
    streams.say("e\0f", "g")
    streams.note("h\ni")
    streams.log("j\nk\x07")
    captured = capsys.readouterr()
    assert captured.out == "a??b?2J\nc\td\n"
    assert captured.err == "e?f\ng\ntfprof: h?i\nj\nk?\n"


def test_characters_that_a_stream_cannot_encode_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, "ascii"))
    streams.print_lines(["größe\udcff"])
    assert buffer.getvalue() == b"gr??e?\n"


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (40, ["tfprof: no step of the job is traced", "  yet-and-so-on?"]),
        (39, ["tfprof: no step of the job is traced yet-and-so-on?"]),
        (0, ["tfprof: no step of the job is traced yet-and-so-on?"]),
        (80, ["tfprof: no step of the job is traced yet-and-so-on?"]),
    ],
)
def test_messages_on_a_terminal_are_broken_between_words(
    columns: int, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, side_of_program = os.openpty()
    fcntl.ioctl(side_of_program, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with os.fdopen(side_of_program, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        streams.note("no step of the job is traced yet-and-so-on\x1b")
    shown = b""
    while select.select([terminal], [], [], 0.2)[0]:  # the kernel may pass on one line after the other
        with contextlib.suppress(OSError):  # all was read, and the other side is closed
            shown += os.read(terminal, 1000)
            continue
        break
    assert shown.decode().splitlines() == lines
    os.close(terminal)


def test_lines_in_the_journal_have_levels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w+") as stream:
        status = os.fstat(stream.fileno())
        monkeypatch.setattr(sys, "stderr", stream)
        for value in (f"{status.st_dev}:{status.st_ino}", f"{status.st_dev}:{status.st_ino + 1}", ""):
            monkeypatch.setenv("JOURNAL_STREAM", value)
            streams.log("a\nb", level=streams.WARNING)
            streams.note("c", level=streams.ERROR)
            streams.log("d")
        stream.seek(0)
        plain = ["a", "b", "tfprof: c", "d"]
        assert stream.read().splitlines() == ["<4>a", "<4>b", "<3>tfprof: c", "d", *plain, *plain]


def test_a_missing_or_full_standard_error_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    streams.say("a")
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stderr", full)
        streams.log("b")
        streams.say("c")
