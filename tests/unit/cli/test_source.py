"""`tfprof source`: source lines with their time, and their text if the file is the same.

Tests collector/documents/source.py, collector/render/source_text.py.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.command import caller
from fakes.made_store import rows, trace_tables, write_job
from fakes.run_metadata import run_metadata
from tfprof.collector.decoders.proto import graph_pb2

UID = 0xAA10000000000001


def write(tmp_path: Path, file: str, lines: dict[str, int], **identity: Any) -> Path:
    """Write a store with a job whose nodes were made by ``lines`` of ``file``, by name."""
    nodes = [graph_pb2.NodeDef(name=name, op="MatMul") for name in lines]
    steps = [run_metadata([name.encode() for name in lines]) for _ in range(2)]
    frames = [
        {"stack": at, "file": file, "line": line, "function": "f", "text": ""} for at, line in enumerate(lines.values())
    ]
    tables = {
        **trace_tables(graph_pb2.GraphDef(node=nodes).SerializeToString(), steps),
        "frames": rows("frames", frames),
        "stacks": rows("stacks", [{"stack": at, "name": name} for at, name in enumerate(lines)]),
    }
    here = {"host": os.uname().nodename, "created_real_ns": time.time_ns() + 10**9, **identity}
    write_job(tmp_path / "store", UID, tables, identity=here, counters={"traced": 2})
    return tmp_path / "store"


def source(store: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(caller(capsys)("source", f"{UID:016x}", "--json", "--store", str(store))[1])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("".join(f"line {number} <b>\x1b[2J\n" for number in range(1, 31)))
    return path


def test_lines_have_their_text_and_the_figures_of_the_op_view(
    tmp_path: Path, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = write(tmp_path, str(script), {"net/a": 5, "net/b": 5, "c": 20})
    document = source(store, capsys)
    (file,) = document["files"]
    assert (file["path"], file["no_text"]) == (str(script), None)
    assert [line["number"] for line in file["lines"]] == [*range(2, 9), *range(17, 24)]
    assert all(line["text"] == f"line {line['number']} <b>?[2J" for line in file["lines"])
    timed = {line["number"]: line for line in file["lines"] if line["time_ns"] is not None}
    assert {number: (line["ops"], line["layer"]) for number, line in timed.items()} == {5: (2, "net"), 20: (1, "")}
    assert sum(line["share"] for line in timed.values()) == pytest.approx(1)
    view = json.loads(caller(capsys)("op", f"{UID:016x}", "--by", "line", "--json", "--store", str(store))[1])
    by_line = {row["label"]: row["time_ns"] for row in view["rows"] if row["depth"] == 1}
    assert {f"train.py:{number}": line["time_ns"] for number, line in timed.items()} == by_line
    assert document["total_ns"] == view["total"]["time_ns"]
    text = caller(capsys)("source", f"{UID:016x}", "--store", str(store))[1]
    assert "line 5 <b>?[2J" in text
    assert "…" in text


def test_a_relative_name_refers_to_the_folder_of_the_process(
    tmp_path: Path, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = source(write(tmp_path, script.name, {"a": 5}, folder=str(tmp_path)), capsys)["files"]
    assert (file["path"], file["no_text"], len(file["lines"])) == (script.name, None, 7)


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        ({"host": "elsewhere"}, "the job ran on another host"),
        ({"created_real_ns": 1}, "it was changed since the job began"),
        ({"started": 1}, "it was changed since the job began"),
        ({"created_real_ns": "x"}, "it was changed since the job began"),
    ],
)
def test_without_text_there_are_numbers_and_figures(
    tmp_path: Path, script: Path, identity: Any, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = source(write(tmp_path, str(script), {"a": 5}, **identity), capsys)["files"]
    assert file["no_text"] == reason
    assert [(line["number"], line["text"]) for line in file["lines"]] == [(5, None)]


def test_a_file_without_the_line_is_another_file(
    tmp_path: Path, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = source(write(tmp_path, str(script), {"a": 99}), capsys)["files"]
    assert file["no_text"] == "it has fewer lines than when the job ran"


def test_at_most_500_lines_are_shown(tmp_path: Path, script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text("x\n" * 9000)
    document = source(write(tmp_path, str(script), {f"n{at}": 10 * at + 10 for at in range(200)}), capsys)
    lines = document["files"][0]["lines"]
    shown = sum(line["time_ns"] is not None for line in lines)
    assert len(lines) <= 500
    assert (shown, document["left_out"]) == (71, 129)
