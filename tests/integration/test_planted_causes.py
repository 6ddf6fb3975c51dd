"""The first advice names the cause that was planted in an unmodified job; healthy jobs get none."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("private_store")]

SCRIPT = Path(__file__).parent / "jobs" / "planted.py"
TFPROF = str(Path(sys.executable).parent / "tfprof")
#: Findings that other processes of the test's host can cause.
_OF_THE_HOST = {"starved", "slower", "uneven"}


def _json(*words: str) -> Any:
    completed = subprocess.run([TFPROF, *words, "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def _run(python: Path, mode: str) -> list[tuple[str, dict[str, Any]]]:
    """Run a job; return the slugs and reports of its advice with a remedy, most saved first."""
    command = [f"{TFPROF}-run", str(python), str(SCRIPT), mode]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert completed.returncode == 0, completed.stderr
    found = [
        (checker["slug"], report)
        for checker in _json("advise", "last")["checkers"]
        for report in checker["reports"]
        if report["todo"] and checker["slug"] not in _OF_THE_HOST
    ]
    return sorted(found, key=lambda pair: (pair[0] != "retracing", -(pair[1]["saving"] or 0)))


@pytest.mark.parametrize(
    ("mode", "slug", "text", "remedy"),
    [
        ("generator", "input", "The pipeline calls samples", "make"),
        ("python_map", "input", "The pipeline calls decode", "make it faster"),
        ("hand_loop", "input", "The pipeline calls samples", "make"),
        ("eager_loop", "overhead", "run op by op", "tf.function"),
        ("single_predict", "overhead", "predict was called", "many samples in one call"),
        ("retraced", "retracing", "was traced", "instead of Python numbers"),
        ("garbage", "python", "garbage collections", "gc.collect()"),
        ("checkpoint_loop", "between", "checkpoint CheckpointManager.save", "save every few minutes"),
        ("summary_loop", "between", "summary ", "write summaries every N steps"),
        ("slow_callback", "between", "callback SlowCallback", "every N batches"),
        ("small_batch", "overhead", "step is small", "larger batches"),
        ("float64", "float64", "float64", "float32"),
    ],
)
def test_the_first_advice_names_the_planted_cause(
    tf2_python: Path, mode: str, slug: str, text: str, remedy: str
) -> None:
    first_slug, report = _run(tf2_python, mode)[0]
    assert (first_slug, text in report["text"], remedy in report["todo"]) == (slug, True, True), report
    if slug == "input":
        assert (report["line"] or "").startswith("planted.py:")
    (parts,) = _json("breakdown", "last")["kinds"]
    assert sum(part["share"] for part in parts["parts"]) == pytest.approx(1)
    assert sum(part["mean_ns"] for part in parts["parts"]) == pytest.approx(parts["period_ns"])


@pytest.mark.parametrize("mode", ["healthy_fit", "healthy_loop", "healthy_pipeline"])
def test_a_healthy_job_gets_no_advice(tf2_python: Path, mode: str) -> None:
    assert _run(tf2_python, mode) == []
    # The figures are the same on every screen.
    parts = _json("breakdown", "last")["kinds"][0]
    assert parts == _json("show", "last")["parts"] == _json("advise", "last")["parts"]
