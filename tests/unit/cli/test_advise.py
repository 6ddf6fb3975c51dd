"""`tfprof advise`, the shell's advise, and the Python API, on stores with invented jobs.

Tests collector/documents/advice.py, collector/query/advising.py.
"""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Run
from fakes.made_steps import Execution, graph, made_job
from fakes.made_store import write_job
from tfprof.collector.api import open_store
from tfprof.collector.errors import UsageError
from tfprof.collector.query.advising import first_advice
from tfprof.collector.store.opening import open_reader

GRAPH = graph({"next": "IteratorGetNext", "work": "MatMul"})
STEP = [Execution("next", 0, 700), Execution("work", 700, 300)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a job that waits for input, and an untraced job."""
    made_job(tmp_path / "store", [STEP, STEP], GRAPH)
    write_job(tmp_path / "store", 0x2222000000000000, {}, identity={"name": "other.py"})
    return tmp_path / "store"


def test_findings_are_printed_with_remedies(run: Run) -> None:
    code, out, err = run("advise", "train.py")
    assert (code, err) == (0, "")
    assert out.startswith(
        "Verdict: highly input-bound: steps wait for input, up to 70 % of the time.\n"
        "run to run 1.00 ms: input 700 µs (70 %), on the device 300 µs (30 %).\n\n"
        "Input: 70 % of the time from step to step is spent waiting for input"
    )
    assert "\n\nMost time: IteratorGetNext takes 70 % of the time of all ops, 700 µs a step;" in out
    assert "\n  what to do: see what makes the batches" in out
    assert "\nChecked, and fine: Faster ops, " in out
    assert "Checker" not in out


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    whole = run("advise", "train.py")[1]
    monkeypatch.setattr("tfprof.cli.advise.width", lambda: columns)
    _, out, _ = run("advise", "train.py")
    assert max(map(len, out.splitlines())) <= columns
    assert out.split() == whole.split()


def test_exact_parity_prints_all_checkers_of_the_tf_profiler_in_its_form(run: Run) -> None:
    _, out, _ = run("advise", "train.py", "--exact-tf")
    assert out.startswith("\nAcceleratorUtilizationChecker:\n\nOperationChecker:\n\nExpensiveOperationChecker:\ntop 1")
    assert "what to do" not in out
    assert "InputChecker" not in out


def test_json_has_every_checker_with_texts_numbers_and_remedies(run: Run) -> None:
    _, out, _ = run("advise", "train.py", "--json")
    checkers = {checker["name"]: checker for checker in json.loads(out)["checkers"]}
    (report,) = checkers["InputChecker"]["reports"]
    assert report["numbers"]["share"] == pytest.approx(0.7)
    assert report["todo"].startswith("see what makes the batches")
    assert report["line"] is None
    missing = "fewer than 12 s of steps"
    assert checkers["MemoryChecker"] == {
        "name": "MemoryChecker",
        "slug": "memory",
        "title": "Memory",
        "missing": missing,
        "reports": [],
    }
    assert json.loads(out)["verdict"] == "highly input-bound: steps wait for input, up to 70 % of the time"


def test_several_jobs_are_checked_one_by_one(run: Run) -> None:
    _, out, err = run("advise", "train.py", "other.py")
    assert out.startswith("job 0000 train.py\nVerdict: highly input-bound: steps wait")
    assert "\n\njob 2222 other.py\nVerdict: unknown, since there is too little data.\n" in out
    assert err.startswith("tfprof: 2222: no traced steps: TensorFlow ran no step")
    _, out, _ = run("advise", "train.py", "other.py", "--json")
    assert len(json.loads(out)["jobs"]) == 2


def test_advice_without_a_job_is_refused(run: Run) -> None:
    code, _, err = run("advise")
    assert code == 2
    assert "no JOB given" in err


def test_a_note_gives_the_reason_for_no_advice(run: Run) -> None:
    _, out, err = run("advise", "other.py")
    assert out.startswith("Verdict: unknown, since there is too little data.\n")
    assert "\nNo data (no traced step): Avoidable ops, Copies, Faster ops, Feeds and fetches, GPU use, Input," in out
    assert err.startswith("tfprof: no traced steps")


def test_the_shell_prints_advice(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("advise\n"))
    assert "Input: 70 %" in run("shell", "train.py")[1]


def test_the_python_api_returns_the_message_and_prints_the_text(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = open_store(store).job("train.py")
    message: Any = job.advise()
    assert message.checkers["InputChecker"].reports[0].startswith("70 % of the time")
    assert "Input: 70 %" in capsys.readouterr().out
    selected = job.advise({"OperationChecker": {}, "JobChecker": {}})
    assert list(selected.checkers) == ["OperationChecker"]


def test_advice_about_parts_of_a_job_is_refused(store: Path) -> None:
    with pytest.raises(UsageError, match="whole jobs"):
        open_store(store).select("train.py", steps=(1, 1)).advise()


def test_jobs_are_named_by_ids_that_are_unique_in_the_store(store: Path, run: Run) -> None:
    write_job(store, 0x2222100000000000, {}, identity={"name": "third.py"})
    write_job(store, 0x2222200000000000, {}, identity={"name": "fourth.py"})
    _, out, err = run("advise", "other.py", "third.py")
    assert "job 22220 other.py\n" in out
    assert "job 22221 third.py\n" in out
    assert err.startswith("tfprof: 22220: no traced steps")
    _, out, _ = run("op", "train.py", "other.py")
    assert ", 22220 other.py" in out.splitlines()[0]


def test_the_first_advice_of_a_job_is_its_verdict(store: Path) -> None:
    reader = open_reader(store)
    assert first_advice(reader.job("train.py")) == "highly input-bound: steps wait for input, up to 70 % of the time"
    assert first_advice(reader.job("other.py")) is None
