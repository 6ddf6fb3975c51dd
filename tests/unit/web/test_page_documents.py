"""The documents of the page are those that the commands print, byte by byte.

Tests collector/export/sink.py, collector/export/zipped.py, web/documents.py.
"""

import io
import json
import zipfile
from pathlib import Path

import pytest
from fakes.command import caller
from fakes.hostile_store import JOB
from fakes.page_server import PageServer
from tfprof.web.documents import DOCUMENTS

UID = f"{JOB:016x}"
#: Path below /api -> the words of the command.
COMMANDS = {
    "jobs": ["jobs"],
    "alerts": ["alerts"],
    **{f"job/{UID}/{name}": [name, UID] for name, document in DOCUMENTS.items() if document.jobs == 1},
    f"job/{UID}/op?max_depth=100000&order_by=micros": ["op", UID, "-max_depth", "100000", "-order_by", "micros"],
    f"job/{UID}/scope?max_depth=100000": ["scope", UID, "-max_depth", "100000"],
    f"job/{UID}/code?step=1&kind=run&device=CPU:0": ["code", UID, "-step", "1", "--kind", "run", "--device", "CPU:0"],
    f"job/{UID}/op?steps=0-1&kind=run": ["op", UID, "--steps", "0-1", "--kind", "run"],
    f"diff/{UID}/{JOB + 1:016x}": ["diff", UID, f"{JOB + 1:016x}"],
}


@pytest.mark.parametrize("path", COMMANDS)
def test_a_document_is_what_the_command_prints(
    server: PageServer,
    store: Path,
    path: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TFPROF_STORE", str(store))
    printed = caller(capsys)(*COMMANDS[path], "--json")[1]
    answer = server.ask(f"/api/{path}")
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/json"
    assert answer.body.decode() == printed
    assert json.loads(printed)


def test_the_live_document_is_that_of_top(
    server: PageServer, store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFPROF_STORE", str(store))
    connection = server.connection()
    connection.request("GET", "/api/live")
    events = connection.getresponse()
    assert [events.readline() for _ in range(4)] == [
        b"event: problem\n",
        b'data: {"error": null}\n',
        b"\n",
        b"event: top\n",
    ]
    live = json.loads(events.readline().removeprefix(b"data: "))
    events.close()
    connection.close()
    printed = json.loads(caller(capsys)("top", "--all", "--json")[1])
    assert {**live, "at_ns": 0} == {**printed, "at_ns": 0}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"job/{UID}/export/chrome?steps=1&kind=run", ["--format", "chrome", "--steps", "1", "--kind", "run"]),
        (f"job/{UID}/export/csv?table=spans", ["--format", "csv", "--table", "spans"]),
        (f"job/{UID}/export/perfetto", ["--format", "perfetto"]),
    ],
)
def test_a_download_is_the_file_of_the_exporter(
    server: PageServer, store: Path, path: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFPROF_STORE", str(store))
    from tfprof.cli import main as cli

    with pytest.raises(SystemExit) as ended:
        cli.main(["export", UID, *words, "-o", str(tmp_path / "file")])
    assert not ended.value.code
    answer = server.ask(f"/api/{path}")
    assert answer.status == 200
    assert answer.body == (tmp_path / "file").read_bytes()
    assert "content-disposition" not in answer.headers
    download = server.ask(f"/api/{path}{'&' if '?' in path else '?'}download=1")
    assert download.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")


@pytest.mark.parametrize("name", ["tensorboard", "profile"])
def test_a_download_of_a_folder_is_a_zip_file(server: PageServer, name: str) -> None:
    answer = server.ask(f"/api/job/{UID}/export/{name}?download=1")
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"].endswith(f".{name}.zip")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.testzip() is None
        assert all(entry.file_size for entry in archive.infolist())
        assert any(entry.filename.endswith((".xplane.pb", ".json")) for entry in archive.infolist())
