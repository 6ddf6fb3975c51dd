"""Reports: their limits, whatever the job has, and their form for tickets.

Tests cli/page_report.py, web/caps.py.
"""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fakes import hostile_store, page_store
from fakes.command import Run, caller
from fakes.page_store import FORMULA, JOBS
from tfprof.collector.numbers import count, duration, percent, size
from tfprof.web import report
from tfprof.web.caps import LADDER, Caps, op_rows, shortened, tree_rows

UID, OTHER = (f"{uid:016x}" for uid in JOBS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_store.write(tmp_path_factory.mktemp("p") / "store")


@pytest.fixture
def run(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TFPROF_STORE", str(store))
    return caller(capsys)


def content(path: Path) -> Any:
    """Return the data of a report."""
    (packed,) = re.findall(r'id="data">([^<]*)<', path.read_text())
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_a_report_has_the_documents_of_the_commands(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    assert run("report", UID, "-o", str(path)) == (0, "", "")
    documents = content(path)["documents"]
    for name in ("show", "advise", "steps", "alerts", "spans", "curves", "memory", "source"):
        assert documents[f"/api/job/{UID}/{name}"] == json.loads(run(name, UID, "--json")[1]), name
    scope, printed = documents[f"/api/job/{UID}/scope"], json.loads(run("scope", UID, "--json")[1])
    assert [row["name"] for row in scope["rows"]] == [row["name"] for row in printed["rows"]]
    assert scope["total"] == printed["total"]


def test_no_text_of_a_job_is_outside_of_the_packed_data(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    run("report", UID, "-o", str(path))
    assert "onerror" not in path.read_text()
    assert "script-src 'sha256-" in path.read_text().replace("&#x27;", "'")


def test_an_existing_file_is_kept(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    path.write_text("mine")
    assert "[file-exists]" in run("report", UID, "-o", str(path))[2]
    assert path.read_text() == "mine"
    assert run("report", UID, "-o", str(path), "--force")[0] == 0
    assert path.read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((UID, "-o", "r.txt"), "does not tell the form"),
        ((UID, OTHER, UID, "-o", "r.html"), "give one JOB, or two"),
        (("-o", "r.html"), "give one JOB, or two"),
        ((UID,), "--output"),
        (("no such", "-o", "r.html"), "no-such-job"),
    ],
)
def test_a_wrong_command_line_writes_nothing(
    run: Run, words: tuple[str, ...], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = run("report", *words)
    assert status in {1, 2}
    assert text in err
    assert list(tmp_path.iterdir()) == []


def test_the_markdown_of_a_job_shows_foreign_texts_as_text(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    assert run("report", UID, "-o", str(path))[0] == 0
    text = path.read_text()
    show = json.loads(run("show", UID, "--json")[1])
    assert text.startswith("# &lt;img src=x")
    assert "<" not in text
    for op in show["top_ops"]["ops"][1:]:
        assert f"| {op['op']} | {op['device']} |" in text
    assert "**Median" not in text
    advice = json.loads(run("advise", UID, "--json")[1])
    assert all(f"| {part['name']} | {duration(part['mean_ns'])} |" in text for part in advice["parts"]["parts"])
    assert f"- **{next(each['title'] for each in advice['checkers'] if each['reports'])}:** " in text
    (memory,) = json.loads(run("memory", UID, "--json")[1])["allocators"]
    assert "| held on CPU:0 cpu |" in text
    assert "| net/MatMul | MatMul | output |" in text
    assert size(memory["holders"][1]["bytes"]) in text


def test_the_markdown_of_two_jobs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    assert run("report", UID, OTHER, "-o", str(path))[0] == 0
    text = path.read_text()
    assert "| before |" in text
    assert "| after |" in text
    assert text.startswith("**38 % slower: 53.0 ms -> 73.0 ms a step; one run a side")
    assert FORMULA not in text  # its characters are escaped
    assert "=HYPERLINK(1)\\|\\`\\*x\\*\\`" in text


@pytest.mark.parametrize("name", ["r.html", "r.md"])
def test_a_job_of_control_characters_has_a_report(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFPROF_STORE", str(hostile_store.write(tmp_path / "store")))
    for words in (
        (f"{hostile_store.JOB:x}",),
        (f"{hostile_store.JOB + 1:x}",),
        ("aa10000000000001", "aa10000000000002"),
    ):
        assert caller(capsys)("report", *words, "-o", str(tmp_path / name), "--force")[0] == 0
        text = (tmp_path / name).read_text()
        assert not re.search("[\0-\x08\x0b-\x1f\x7f\ud800-\udfff]", text)


def test_the_largest_limits_that_fit_are_taken(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("report", UID, "-o", str(tmp_path / "a.html"))
    whole = (tmp_path / "a.html").stat().st_size
    monkeypatch.setattr(report, "SIZE_MAX", whole - 200)  # the packed time of a report takes more or fewer bytes
    run("report", UID, "-o", str(tmp_path / "b.html"))
    assert content(tmp_path / "a.html")["limits"] == LADDER[0].sentence()
    assert content(tmp_path / "b.html")["limits"] != LADDER[0].sentence()


def test_the_smallest_limits_keep_any_job_below_the_size() -> None:
    caps = LADDER[-1]
    text = "\x00é" * 20_000
    nodes = [{"name": text, "time_ns": at} for at in range(100)]
    rows = [{"name": text, "share": 1 / 300, "parent": None, "nodes": nodes} for _ in range(1000)]
    ops = shortened(op_rows({"rows": rows}, caps), caps)
    assert len(ops["rows"]) == caps.ops
    assert len(ops["rows"][0]["nodes"]) == caps.nodes
    assert ops["rows"][0]["nodes"][0]["time_ns"] == 99
    assert len(gzip.compress(json.dumps(ops).encode())) < report.SIZE_MAX / 4
    assert tree_rows({"rows": rows}, caps)["rows"] == []


@pytest.mark.parametrize("caps", LADDER)
def test_a_report_states_all_its_limits_but_that_of_texts(caps: Caps) -> None:
    numbers = (caps.ops, caps.nodes, caps.kinds, 2 * caps.points, caps.rows)
    stated = re.findall(r"\d[\d,.]*(?: %)?", caps.sentence())
    assert sorted(stated) == sorted([*map(count, numbers), percent(caps.share)])


def test_parents_of_rows_that_are_kept_are_kept() -> None:
    rows = [
        {"name": "a", "share": 0.5, "parent": None, "nodes": [1]},
        {"name": "a/b", "share": 0.0001, "parent": 0, "nodes": []},
        {"name": "a/b/c", "share": None, "parent": 1, "nodes": []},
        {"name": "a/d", "share": 0.4, "parent": 0, "nodes": []},
        {"name": "a/d/e", "share": 0.4, "parent": 3, "nodes": []},
    ]
    kept = tree_rows({"rows": rows}, LADDER[0])["rows"]
    assert [(row["name"], row["parent"]) for row in kept] == [("a", None), ("a/d", 0), ("a/d/e", 1)]
