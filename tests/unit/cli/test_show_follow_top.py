"""`show`, `follow` and `top` on a store with invented jobs: text and JSON.

Tests collector/documents/changes.py, collector/documents/overview.py,
collector/documents/watched.py, collector/render/lines_text.py, collector/render/overview_text.py,
collector/render/top_text.py, collector/summaries/live.py, cli/follow.py, cli/show.py, cli/top.py.
"""

import json
from pathlib import Path

import pytest
from fakes.command import Run
from fakes.ended_jobs import tables
from fakes.made_steps import Execution, graph, made_job
from fakes.made_store import HOST, MS, rows, write_job
from tfprof.collector.store.writer import LocalStoreWriter

# -- show -----------------------------------------------------------------------------------------


def test_show_prints_the_summary_of_a_job_on_one_screen(run: Run) -> None:
    code, out, err = run("show", "train.py")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("job 7f3a train.py · exited 1 · 60.0 s since ")
    assert "phases   starting 5.00 s · fit 20.0 s · evaluate 500 ms · ending 33.5 s" in lines
    assert [line.split()[:3] for line in lines if line.startswith("batch")] == [["batch", "40", "20.0"]]
    assert any(line.startswith("cpu cores") and " 2.00 " in line for line in lines)
    assert any(line.startswith("host cores of 8") for line in lines)
    assert "alerts   no step for 20.0 s after batch 40; a step usually takes 500 ms [stall]" in lines
    assert "warnings some are missing: 3 [gap]" in lines
    assert err.startswith("tfprof: no traced steps")
    assert len(lines) <= 24


def test_next_commands_need_no_traced_steps_if_there_are_none(run: Run) -> None:
    assert run("show", "7f3a")[1].splitlines()[-1] == "more     tfprof steps 7f3a · tfprof advise 7f3a"
    assert run("memory", "7f3a")[1].splitlines()[-1] == "next: tfprof host 7f3a"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_show_fits_its_screen(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int) -> None:
    name = "gradients/some/long/scope/of/a/layer/MatMul_grad/MatMul"
    made_job(tmp_path / "s", [[Execution(name, 0, 500 + n)] for n in range(6)], graph({name: "MatMul"}), **tables())
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "s"))
    out = run("show", "last")[1]
    assert max(map(len, out.splitlines())) <= width
    assert "MatMul" in out


def test_show_lists_everything_that_cannot_be_recorded_and_untested_versions(run: Run, tmp_path: Path) -> None:
    texts = [f"module {number} lacks a name" for number in range(7)]
    events = [{"t_ns": 9, "slug": "patch-missing", "text": text, "count": 1} for text in texts]
    identity = {"framework": "tensorflow", "framework_version": "2.22.0", "python": "3.14.1"}
    job_tables = {**tables(), "events": rows("events", [{**events[0], "t_ns": 1, "slug": "gap"}, *events])}
    write_job(tmp_path / "s", 1, job_tables, identity=identity)
    out = run("show", "last", "--store", str(tmp_path / "s"))[1]
    assert [text for text in texts if f"{text} [patch-missing]" not in out] == []
    assert "CPython 3.14.1 is newer than 3.13" in out
    assert "TensorFlow 2.22.0 is newer than 2.21" in out
    document = json.loads(run("show", "last", "--store", str(tmp_path / "s"), "--json")[1])
    assert [warning["text"] for warning in document["warnings"][:7]] == texts
    assert sum("[untested-version]" in note for note in document["notes"]) == 2


def test_show_as_json_has_every_part(run: Run) -> None:
    document = json.loads(run("show", "7f3a", "--json")[1])
    assert [item["name"] for item in document["phases"]] == ["starting", "fit", "evaluate", "ending"]
    (batch,) = document["step_times"]
    assert set(batch) == {"kind", "count", "spread", "traced", "curve", "since"}
    assert (batch["kind"], batch["count"], batch["spread"]["p50_ns"]) == ("batch", 40, 20 * MS)
    assert document["top_ops"]["why"].startswith("no traced steps")
    assert document["job_series"]["cpu_cores"]["mean"] == 2.0
    assert (document["cpus"], document["state"], document["tags"]) == (8, "exited", [])
    assert [item["slug"] for item in document["warnings"]] == ["gap"]


# -- follow ---------------------------------------------------------------------------------------


def test_follow_prints_the_last_steps_and_the_end(run: Run) -> None:
    code, out, err = run("follow", "7f3a", "--last", "3")
    first, *steps, last = out.splitlines()
    assert (code, err) == (0, "")
    assert first.startswith(f"job 7f3a train.py · exited 1 · ada@{HOST}, pid 4711 · TF 2.21.0 · 40 batch steps so far")
    assert [line.split()[1:3] for line in steps[:3]] == [["epoch", "1"], ["fit", "1"], ["evaluate", "1"]]
    assert steps[3].endswith("some are missing: 3 [gap]")
    assert (
        last == "job 7f3a train.py · exited 1 · 60.0 s · 40 batch steps · median 20.0 ms"
        " · 0 steps traced (cost 0 ns) · 0 lost"
    )


def test_follow_as_json_prints_one_document_per_line(run: Run) -> None:
    documents = [json.loads(line) for line in run("follow", "7f3a", "--all", "--json")[1].splitlines()]
    assert documents[0]["event"] == "job"
    assert documents[-1]["event"] == "end"
    assert documents[-1]["median_ns"] == 20 * MS
    batches = [document for document in documents if document["event"] == "steps" and document["kind"] == "batch"]
    assert [document["first"] for document in batches] == list(range(1, 41))
    assert {document["event"] for document in documents} == {"job", "steps", "warning", "end"}


def test_follow_of_several_jobs_prefixes_each_line_with_the_job(run: Run) -> None:
    out = run("follow", "7f3a", "7f3b")[1]
    assert any(line.startswith("7f3a  ") for line in out.splitlines())
    assert "job 7f3b other.py · exited" in out


# -- top ------------------------------------------------------------------------------------------


def test_top_without_a_terminal_prints_once(run: Run, writer: LocalStoreWriter) -> None:
    code, out, err = run("top")
    summary, header, job = out.splitlines()
    assert (code, err) == (0, "")
    assert "1 starting" in summary
    assert header.split()[:3] == ["ID", "NAME", "USER"]
    assert job.split()[:2] == ["1234", "live.py"]


def test_top_as_json_has_jobs_and_hosts(run: Run, writer: LocalStoreWriter) -> None:
    document = json.loads(run("top", "--json", "--all")[1])
    assert [job["id"] for job in document["jobs"]] == ["1234", "7f3b", "7f3a"]
    assert document["jobs"][0]["now"]["idle_ns"] is None
    assert json.loads(run("top", "--json", "--all", "--filter", "other")[1])["jobs"][0]["id"] == "7f3b"


def test_top_explains_an_empty_list(run: Run) -> None:
    assert "no job of" in run("top")[2]
    assert "no job matches 'x'" in run("top", "--filter", "x")[2]
