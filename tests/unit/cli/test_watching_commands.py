"""`show`, `follow`, `top`, `tag` and `rm` on stores made by hand: text, JSON, errors."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Run, caller
from fakes.made_steps import Execution, graph, made_job
from fakes.made_store import HOST, IDENTITY, MS, SECOND, START_NS, rows, span, write_host, write_job
from tfprof.collector.store import catalog
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout

TRAIN, OTHER, LIVE = 0x7F3A << 48, 0x7F3B << 48, 0x1234 << 48
COUNTERS = {"traced": 0, "counts": {"batch": 40, "epoch": 2}, "times": {"batch": 40 * 20 * MS}, "step_ns": 100}


def tables() -> dict[str, Any]:
    spans = [span(layout.FIT, 1, 5_000, 20_000), span(layout.EVALUATE, 1, 26_000, 500)]
    spans += [span(layout.EPOCH, 1, 5_000, 19_990)]
    spans += [span(layout.BATCH, n, 5_000 + n * 400, 20, parent=1) for n in range(1, 41)]
    samples = [{"t_ns": START_NS + n * SECOND, "cpu_user_s": 2.0 * n, "rss_bytes": 10**9} for n in range(30)]
    events = [{"t_ns": START_NS, "slug": "gap", "text": "some are missing", "count": 3}]
    alerts = [{"found_ns": START_NS, "slug": "stall", "kind": layout.BATCH, "step": 40, "before": 5e8, "now": 2e10}]
    entries = {"spans": spans, "samples": samples, "events": events, "alerts": alerts}
    return {name: rows(name, values) for name, values in entries.items()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two ended jobs."""
    write_job(tmp_path, TRAIN, tables(), counters=COUNTERS, end={**COUNTERS, "status": 1})
    write_job(tmp_path, OTHER, {}, identity={"name": "other.py"})
    write_host(tmp_path, [{"t_ns": START_NS + n * SECOND, "cpus": 8, "cpu_busy_s": 3.0 * n} for n in range(40)])
    return tmp_path


@pytest.fixture
def writer(store: Path) -> Iterator[LocalStoreWriter]:
    """The writer of the store, which now also has a running job of this host."""
    store_writer = LocalStoreWriter(store, socket.gethostname())
    store_writer.job(LIVE).set_identity({**IDENTITY, "name": "live.py", "host": socket.gethostname()})
    yield store_writer
    store_writer.close()


@pytest.fixture
def run(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TFPROF_STORE", str(store))
    return caller(capsys)


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


@pytest.mark.parametrize("width", [60, 80, 200])
def test_show_fits_its_screen(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int) -> None:
    name = "gradients/some/long/scope/of/a/layer/MatMul_grad/MatMul"
    made_job(tmp_path / "s", [[Execution(name, 0, 500 + n)] for n in range(6)], graph({name: "MatMul"}), **tables())
    monkeypatch.setenv("COLUMNS", str(width))
    out = run("show", "last", "--store", str(tmp_path / "s"))[1]
    assert max(map(len, out.splitlines())) <= width
    assert "MatMul" in out


def test_show_as_json_has_every_part(run: Run) -> None:
    document = json.loads(run("show", "7f3a", "--json")[1])
    assert [item["name"] for item in document["phases"]] == ["starting", "fit", "evaluate", "ending"]
    (batch,) = document["step_times"]
    assert set(batch) == {"kind", "count", "spread", "traced", "curve"}
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
        last
        == "job 7f3a train.py · exited 1 · 60.0 s · 40 batch steps · median 20.0 ms · 0 traced (cost 0.0 %) · 0 lost"
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


# -- tag ------------------------------------------------------------------------------------------


def test_ended_and_running_jobs_can_be_tagged(run: Run, writer: LocalStoreWriter) -> None:
    assert run("tag", "7f3a", "baseline", "lr 0.1") == (0, "baseline\nlr 0.1\n", "")
    assert run("tag", "7f3a", "baseline", "x")[1].split("\n")[:3] == ["baseline", "lr 0.1", "x"]
    run("tag", "live.py", "mine")
    writer.job(LIVE).close("exited", {})  # closing rewrites job.json, which does not contain tags
    assert run("tag", "1234")[1] == "mine\n"
    assert [job["tags"] for job in json.loads(run("jobs", "--json")[1])["jobs"]] == [
        ["baseline", "lr 0.1", "x"],
        [],
        ["mine"],
    ]


def test_tags_can_be_removed(run: Run) -> None:
    run("tag", "7f3a", "a", "b", "c")
    assert run("tag", "7f3a", "--remove", "b")[1] == "a\nc\n"
    assert (
        run("tag", "7f3a", "--remove", "--json")[1] == json.dumps({"job": f"{TRAIN:016x}", "tags": []}, indent=2) + "\n"
    )
    code, _, err = run("tag", "7f3a", "--remove", "b")
    assert (code, "the job has no tag 'b'" in err) == (2, True)


@pytest.mark.parametrize("text", ["{", "[]", '{"tags": 3}', '{"tags": [1, "kept"]}', ""])
def test_an_invalid_file_of_tags_does_no_harm(run: Run, store: Path, text: str) -> None:
    (catalog.job_folder(store, TRAIN) / catalog.TAGS_FILE).write_text(text)
    code, out, _ = run("jobs", "--json")
    assert code == 0
    assert json.loads(out)["jobs"][0]["tags"] in ([], ["kept"])
    assert run("tag", "7f3a", "new")[1].endswith("new\n")


def test_a_pipe_instead_of_the_file_of_tags_does_not_block(run: Run, store: Path) -> None:
    os.mkfifo(catalog.job_folder(store, TRAIN) / catalog.TAGS_FILE)
    assert run("tag", "7f3a") == (0, "", "")


# -- rm -------------------------------------------------------------------------------------------


def remaining_jobs(store: Path) -> list[str]:
    return sorted(path.name[:4] for path in (store / "jobs").iterdir())


def test_rm_removes_ended_jobs_completely(run: Run, store: Path, writer: LocalStoreWriter) -> None:
    code, out, err = run("rm", "7f3a")
    assert (code, err) == (0, "")
    assert out.startswith("removed 1 job, ")
    assert remaining_jobs(store) == ["1234", "7f3b"]
    assert json.loads(run("rm", "7f3b", "--json")[1])["removed"] == [f"{OTHER:016x}"]


def test_rm_refuses_a_running_job_and_removes_none(run: Run, store: Path, writer: LocalStoreWriter) -> None:
    code, _, err = run("rm", "7f3a", "live.py")
    assert (code, "[job-running]" in err) == (1, True)
    assert remaining_jobs(store) == ["1234", "7f3a", "7f3b"]


def test_rm_removes_the_selected_jobs(run: Run, store: Path, writer: LocalStoreWriter) -> None:
    assert run("rm", "--name", "OTH*", "--yes")[0] == 0
    assert remaining_jobs(store) == ["1234", "7f3a"]
    assert "nothing was removed" in run("rm", "--older-than", "2020-01-01", "--yes")[2]
    assert run("rm", "--older-than", "1d", "--yes")[0] == 0
    assert remaining_jobs(store) == ["1234"]
    assert "nothing was removed" in run("rm", "--all", "--yes")[2]


def test_rm_removes_a_job_whose_collector_ended_unless_its_process_runs(
    run: Run, store: Path, writer: LocalStoreWriter
) -> None:
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    identity = {"name": "mine.py", "host": socket.gethostname(), "pid": os.getpid(), "started": int(stat[19])}
    writer.job(0x5678 << 48).set_identity(identity)
    writer.close()
    assert run("rm", "--older-than", "1d", "--yes")[0] == 0
    assert remaining_jobs(store) == ["1234", "5678"]
    assert run("rm", "--all", "--yes")[0] == 0
    assert remaining_jobs(store) == ["5678"]


def test_rm_of_many_jobs_needs_yes_without_a_terminal(run: Run, store: Path) -> None:
    code, _, err = run("rm", "--all")
    assert (code, "--yes" in err) == (2, True)
    assert remaining_jobs(store) == ["7f3a", "7f3b"]


def test_a_stale_job_can_be_removed_unless_its_process_is_alive(run: Run, store: Path) -> None:
    own_start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    for uid, started in ((LIVE, own_start), (LIVE + 1, own_start + 1)):
        writer = LocalStoreWriter(store, socket.gethostname())
        writer.job(uid).set_identity({**IDENTITY, "name": f"{uid & 1}.py", "pid": os.getpid(), "started": started})
        writer.close()
    assert LocalStore(store).job("0.py").info.state == "stale"
    assert "[job-running]" in run("rm", "0.py")[2]
    assert run("rm", "1.py")[0] == 0


def test_leftovers_of_an_interrupted_removal_do_no_harm(run: Run, store: Path) -> None:
    leftover = store / "jobs" / f".removed-{TRAIN:016x}"
    leftover.mkdir()
    (leftover / "spans-000000.parquet").write_text("x")
    assert run("rm", "7f3a")[0] == 0
    assert remaining_jobs(store) == ["7f3b"]
