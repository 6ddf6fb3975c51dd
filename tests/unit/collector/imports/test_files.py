"""Reading of users' files: binary and text, and refusals in one line."""

import os
from pathlib import Path

import pytest
from tfprof.collector.errors import TfprofError
from tfprof.collector.imports import files
from tfprof.collector.imports.files import BINARY, TEXT, BadFileError, contents, is_text, parse
from tfprof.collector.proto.tensorflow_pb2 import GraphDef


def refusal_text(data: bytes, *formats: str) -> str:
    with pytest.raises(BadFileError) as caught:
        parse(data, GraphDef, "g.pb", formats)
    return str(caught.value)


def test_a_file_is_read_completely(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x00\x01\xff")
    assert contents(str(tmp_path / "f")) == b"\x00\x01\xff"


def test_a_pipe_is_read_to_its_end() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"piped")
    os.close(writer)
    assert contents(f"/dev/fd/{reader}") == b"piped"
    os.close(reader)


@pytest.mark.parametrize(("name", "reason"), [("missing", "No such file or directory"), (".", "Is a directory")])
def test_an_unreadable_file_is_refused_with_the_reason(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(TfprofError, match=f"cannot read {tmp_path / name}: {reason} \\[io\\]"):
        contents(str(tmp_path / name))


def test_a_file_larger_than_any_message_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(files.BYTES_MAX + 1)
    with pytest.raises(BadFileError, match="huge is larger than 2 GiB"):
        contents(str(tmp_path / "huge"))


def test_reading_an_endless_file_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BYTES_MAX", 1 << 20)
    with pytest.raises(BadFileError, match="/dev/zero is larger"):
        contents("/dev/zero")


def test_messages_are_read_as_binary_and_as_text() -> None:
    graph = GraphDef()
    graph.node.add(name="größe", op="Const").attr["value"].tensor.string_val.append(b"\xff\x00")
    text = str(graph).encode()
    assert is_text(text)
    assert not is_text(graph.SerializeToString())
    for formats in ((BINARY, TEXT), (TEXT, BINARY)):
        assert parse(text, GraphDef, "g", formats) == parse(graph.SerializeToString(), GraphDef, "g", formats) == graph


@pytest.mark.parametrize(
    ("data", "formats", "message"),
    [
        (b"\x0a\x05abc", (BINARY,), "g.pb is not a valid GraphDef: its bytes do not parse as one [bad-file]"),
        (b"\x0a\x05abc", (TEXT, BINARY), "g.pb is not a valid GraphDef: its bytes do not parse as one [bad-file]"),
        (b'node {\n  nam: "a" }', (BINARY, TEXT), 'GraphDef: 2:3 : Message type "NodeDef" has no field named "nam".'),
        (b'node { name: "\xff" }', (TEXT,), "it is text, but not UTF-8, or nested too deeply"),
        (b"node {" + b" attr { value { func { attr { value {" * 2000, (TEXT,), "is not a valid GraphDef"),
    ],
)
def test_the_reason_for_a_refusal_depends_on_the_format_of_the_file(
    data: bytes, formats: tuple[str, ...], message: str
) -> None:
    assert message in refusal_text(data, *formats)
