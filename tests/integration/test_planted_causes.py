"""The first advice names the cause that was planted in an unmodified job; healthy jobs get none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.command import output_of
from fakes.profiled import ProfiledScripts

pytestmark = pytest.mark.tf

SCRIPT = Path(__file__).parent / "jobs" / "planted.py"
Findings = list[tuple[str, dict[str, Any]]]
#: Runs a mode of the script as a job, and returns advice on it: slugs and reports. A busy host may
#: hide a cause, so the job runs again, up to TRIES times in all, until the advice is as expected.
Run = Callable[[str, Callable[[Findings], bool]], Findings]
TRIES = 3
#: Findings that other processes of the test's host can cause.
_OF_THE_HOST = {"starved", "slower", "uneven"}


def _json(*words: str) -> Any:
    return json.loads(output_of(*words, "--json"))


@pytest.fixture
def run(profiled_jobs: Callable[[str], ProfiledScripts]) -> Run:
    """Return a function that runs a job; it returns the advice with a remedy, most saved first."""

    def run_job(mode: str) -> Findings:
        result = profiled_jobs("tf2").run("budget=1%", SCRIPT, mode)
        assert result.status == 0, result.errors
        found = [
            (checker["slug"], report)
            for checker in _json("advise", "last")["checkers"]
            for report in checker["reports"]
            if report["todo"] and checker["slug"] not in _OF_THE_HOST
        ]
        return sorted(found, key=lambda pair: (pair[0] != "retracing", -(pair[1]["saving"] or 0)))

    def run_until(mode: str, is_expected: Callable[[Findings], bool]) -> Findings:
        for _ in range(TRIES):
            found = run_job(mode)
            if is_expected(found):
                break
        return found

    return run_until


@pytest.mark.parametrize(
    ("mode", "slug", "text", "remedy"),
    [
        ("generator", "input", "The pipeline calls samples", "make"),
        ("python_map", "input", "The pipeline calls decode", "make it faster"),
        ("hand_loop", "input", "The pipeline calls samples", "make"),
        ("eager_loop", "overhead", "run op by op", "tf.function"),
        ("run_eagerly", "overhead", "run op by op", "compile without run_eagerly"),
        ("busy_thread", "interpreter", "which runs count (planted.py:", "to a process of its own"),
        ("conversion", "fetches", "making tensors of values of Python", "once, before the loop"),
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
def test_the_first_advice_names_the_planted_cause(run: Run, mode: str, slug: str, text: str, remedy: str) -> None:
    def is_expected(found: Findings) -> bool:
        first_slug, report = next(iter(found), ("", {"text": "", "todo": ""}))
        return first_slug == slug and text in report["text"] and remedy in report["todo"]

    found = run(mode, is_expected)
    assert is_expected(found), found
    if slug in {"input", "interpreter", "fetches"}:
        assert (found[0][1]["line"] or "").startswith("planted.py:")
    (parts,) = _json("breakdown", "last")["kinds"]
    assert sum(part["share"] for part in parts["parts"]) == pytest.approx(1, abs=1e-4)
    assert sum(part["mean_ns"] for part in parts["parts"]) == pytest.approx(parts["period_ns"])


@pytest.mark.parametrize("mode", ["healthy_fit", "healthy_loop", "healthy_pipeline"])
def test_a_healthy_job_gets_no_advice(run: Run, mode: str) -> None:
    assert run(mode, lambda found: not found) == []
    # The figures are the same on every screen.
    parts = _json("breakdown", "last")["kinds"][0]
    assert parts == _json("show", "last")["parts"] == _json("advise", "last")["parts"]
