"""Jobs that trace or debug their own runs, and jobs without TensorFlow's profiler."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tf

JOBS = Path(__file__).parent / "jobs"
TFPROF = str(Path(sys.executable).parent / "tfprof")


def _run(*command: object) -> str:
    """Run a job and return its end report."""
    completed = subprocess.run(
        [f"{TFPROF}-run", *map(str, command)], capture_output=True, text=True, timeout=120, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stderr[completed.stderr.index("tfprof: job") :]


def _document(command: str) -> dict[str, Any]:
    completed = subprocess.run(
        [TFPROF, command, "last", "--json"], capture_output=True, text=True, timeout=60, check=True
    )
    document: dict[str, Any] = json.loads(completed.stdout)
    return document


def _text(command: str) -> str:
    return subprocess.run([TFPROF, command, "last"], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.usefixtures("private_store")
def test_traces_that_a_job_requests_are_not_called_tfprofs(tf1_python: Path) -> None:
    report = _run("--trace", "off", tf1_python, JOBS / "own_metadata.py")
    assert " 0 steps traced " in report
    assert "traced by the job itself     12" in _text("steps")
    shown = _document("show")
    assert shown["traced"] == 0
    assert not any(times["traced"] for times in shown["step_times"])
    assert any(note.startswith("the job itself traced 12 of its session runs") for note in shown["notes"])


@pytest.mark.usefixtures("private_store")
def test_a_cost_of_traces_that_a_job_requests_is_said_to_be_its_own(tf1_python: Path) -> None:
    report = " ".join(_run("--trace", "budget=0.01%", tf1_python, JOBS / "own_metadata.py").split())
    assert "the job itself traced 12 of its session runs" in report
    assert "more than estimated" not in report


@pytest.mark.usefixtures("private_store")
def test_nodes_of_the_debugger_count_by_their_op_types(tf1_python: Path) -> None:
    _run("--trace", "all", tf1_python, JOBS / "own_metadata.py", "debug")
    names = {op["op"] for op in _document("show")["top_ops"]["ops"]}
    assert {"DebugIdentity", "Copy"} <= names
    assert not any("__dbg" in name or "__copy" in name for name in names)


@pytest.mark.usefixtures("private_store")
def test_a_profiler_that_the_environment_switches_off_is_named(
    tf2_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_DISABLE_PROFILING", "1")
    report = " ".join(_run("--trace", "all", tf2_python, JOBS / "advised.py", "retraced").split())
    assert "TF_DISABLE_PROFILING" in report
    assert "[profiler-disabled]" in report
    assert "another profiler session" not in report
