"""A job of a framework that only its shim knows is counted, weighted and shown by kinds' names."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.made_steps import Execution, run_metadata

JOB = Path(__file__).parent / "jobs" / "other_framework.py"
TFPROF = str(Path(sys.executable).parent / "tfprof")


def _tfprof(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TFPROF, *arguments], capture_output=True, text=True, timeout=60, check=False)


def _document(*arguments: str) -> Any:
    completed = _tfprof(*arguments, "--json")
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


@pytest.fixture
def report(private_store: Path, tmp_path: Path) -> str:
    """The report of `tfprof-run` about the job. The job is in the store."""
    metadata = tmp_path / "metadata"
    metadata.write_bytes(run_metadata([Execution("dense", 0, 10)], time.time_ns()))
    command = [TFPROF + "-run", sys.executable, str(JOB), str(metadata)]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed.stderr


def test_kinds_that_the_hello_declares_are_counted_weighted_and_shown(report: str) -> None:
    assert " 10 steps · median step 3" in report
    (job,) = _document("jobs")["jobs"]
    assert (job["framework"], job["step_kind"], job["steps"]) == ("other", "train_step", 10)
    steps = _document("steps", "last")
    assert [(group["kind"], group["count"]) for group in steps["kinds"]] == [("train_step", 10), ("forward", 30)]
    tree = _tfprof("spans", "last").stdout
    assert all(word in tree for word in ("warm_up", "train_step", "forward"))
    assert _document("op", "last")["kinds"] == {"train_step": 1}
    for word, message in (
        ("forward", "no step of the kind forward was traced; there are 1 train_step"),
        ("backward", "no kind of step is called 'backward': batch, "),
    ):
        assert message in _tfprof("op", "last", "--kind", word).stderr
    assert "train_step" in _tfprof("show", "last").stdout
