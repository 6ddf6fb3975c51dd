"""Advice, end reports and steps of unmodified jobs: the lines and functions that they name."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.command import output_of
from tfprof.collector.store.reader import LocalJob, LocalStore

pytestmark = pytest.mark.tf

SCRIPT = Path(__file__).parent / "jobs" / "advised.py"
SESSIONS = SCRIPT.with_name("advised_sessions.py")
#: Runs of a job: if other tests take the processors, that is what advice says.
TRIES = 3
TFPROF = str(Path(sys.executable).parent / "tfprof")


def _line(mode: str, script: Path = SCRIPT) -> str:
    """Return the line of the job that the advice must name."""
    lines = script.read_text().splitlines()
    return f"{script.name}:{next(at for at, text in enumerate(lines, 1) if text.endswith(f'the line of {mode}'))}"


def _run(python: Path, mode: str, script: Path = SCRIPT, trace: str = "every=5") -> str:
    """Run a job and return its end report."""
    command = [f"{TFPROF}-run", "--trace", trace, str(python), str(script), mode]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed.stderr[completed.stderr.index("tfprof: job") :]


def _advice() -> dict[str, list[dict[str, Any]]]:
    checkers = json.loads(output_of("advise", "last", "--json"))["checkers"]
    return {checker["slug"]: checker["reports"] for checker in checkers}


def _job(store: Path) -> LocalJob:
    return LocalStore(store).job("last")


@pytest.mark.parametrize(
    ("mode", "slug", "number_name"),
    [("input_bound", "input", "share"), ("retraced", "retracing", "graphs"), ("small", "tiny", "ops_per_step")],
)
def test_advice_names_the_line_of_the_user(
    private_store: Path, tf2_python: Path, mode: str, slug: str, number_name: str
) -> None:
    for _ in range(TRIES):
        report = _run(tf2_python, mode)
        advice = _advice()
        findings = [finding for finding in advice[slug] if number_name in finding["numbers"]]
        if findings:
            break
    finding = findings[0]
    assert finding["line"].startswith(_line(mode))
    assert finding["todo"]
    assert advice["memory"] == []  # the import of TensorFlow does not count as growth
    assert _line("fit of input_bound" if mode == "input_bound" else mode) in report
    assert "site-packages" not in json.dumps(advice)
    assert "<module>" not in json.dumps(advice)
    assert "trainer.py" not in json.dumps(advice)
    if mode == "small":
        check_steps(private_store)


def test_advice_reports_memory_that_a_loop_keeps(private_store: Path, tf2_python: Path) -> None:
    _run(tf2_python, "grows")
    (finding,) = _advice()["memory"]
    assert finding["line"].startswith(_line("grows"))
    # The loop keeps 2 MB each 0.2 s, which is at most 600 MB a minute.
    assert 300e6 < finding["numbers"]["bytes_per_minute"] < 700e6
    assert finding["numbers"]["first_bytes"] > 0
    assert finding["numbers"]["last_bytes"] > finding["numbers"]["first_bytes"]


@pytest.mark.parametrize(
    ("mode", "kind", "share_min"),
    [("alternating", "run", 0.5), ("initializing", "init", 0.3), ("saving", "checkpoint", 0.1)],
)
def test_steps_of_another_kind_are_not_taken_for_python(
    private_store: Path, tf1_python: Path, mode: str, kind: str, share_min: float
) -> None:
    _run(tf1_python, mode, SESSIONS, "budget=1%")
    advice = _advice()
    finding = advice["between"][0]
    assert finding["numbers"]["kind"] == kind
    assert finding["numbers"]["share"] > share_min
    assert advice["input"] == []
    assert "prefetch" not in json.dumps(advice)


@pytest.mark.usefixtures("private_store")
def test_a_growing_graph_is_the_first_advice_with_its_line(tf1_python: Path) -> None:
    _run(tf1_python, "growing", SESSIONS, "every=10")
    (finding,) = _advice()["retracing"]
    assert finding["line"].startswith(_line("growing", SESSIONS))
    text = output_of("advise", "last")
    assert text.startswith("Verdict: graphs are built again while steps run.\n")
    assert text.split("\n\n")[1].startswith("Retracing: ")


@pytest.mark.usefixtures("private_store")
def test_a_pipeline_that_prefetches_is_not_told_to_prefetch(tf2_python: Path) -> None:
    _run(tf2_python, "prefetched")
    (finding,) = _advice()["input"]
    assert finding["line"].startswith(_line("prefetched"))
    assert " The pipeline calls batches, " in finding["text"]
    assert "dataset.prefetch" not in finding["todo"]
    assert "generators" in finding["todo"]


def check_steps(store: Path) -> None:
    """Check that steps of functions have the names of the functions."""
    groups = json.loads(output_of("steps", "last", "--json"))["groups"]
    assert {group["call"] for group in groups} == {"tiny"}
    assert sum(group["count"] for group in groups) <= 60
    assert "tiny" in _job(store).info.identity["functions"].values()
    assert "function tiny" in output_of("spans", "last")
