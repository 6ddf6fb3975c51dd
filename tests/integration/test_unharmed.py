"""Jobs end, print and free memory as without tfprof; in most tests every step is traced."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tf

SCRIPT = str(Path(__file__).parent / "jobs" / "unharmed.py")
TFPROF = str(Path(sys.executable).parent / "tfprof")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    folder = tmp_path_factory.mktemp("unharmed")
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "TFPROF_STORE": str(folder / "store")}
    yield {**environ, "TF_CPP_MIN_LOG_LEVEL": "0"}
    subprocess.run([TFPROF, "stop"], env=environ, check=False, capture_output=True, timeout=60)


def _run(environment: Mapping[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("scenario", "output"),
    [
        ("finalizers", "500 500 1000 0\n"),
        ("deleted", "12\n"),
        ("daemon", ""),
        ("eager", "0 0\n"),
        ("descriptors", "0\n"),
    ],
)
def test_a_job_runs_as_without_tfprof(
    scenario: str, output: str, environment: Mapping[str, str], tf2_python: Path
) -> None:
    command = [TFPROF + "-run", "--quiet", "--trace", "all", str(tf2_python), SCRIPT, scenario]
    completed = _run(environment, *command)
    assert (completed.returncode, completed.stdout) == (7, output), completed.stderr
    assert "profiler_session" not in completed.stderr
    assert "Exception ignored" not in completed.stderr


def test_profiler_sessions_of_the_job_start_whatever_is_traced(
    environment: Mapping[str, str], tf2_python: Path
) -> None:
    completed = _run(environment, TFPROF + "-run", "--quiet", "--trace", "all", str(tf2_python), SCRIPT, "sessions")
    assert completed.returncode == 7, completed.stderr
    assert completed.stderr.count("Profiler session started") == 50


@pytest.mark.parametrize("options", [(), ("--trace", "all")], ids=" ".join)
def test_objects_that_the_job_drops_are_freed_as_without_tfprof(
    options: tuple[str, ...], environment: Mapping[str, str], tf2_python: Path
) -> None:
    job = [str(tf2_python), str(Path(SCRIPT).with_name("references.py"))]
    without_tfprof, with_tfprof = _run(environment, *job), _run(environment, TFPROF + "-run", "--quiet", *options, *job)
    assert (with_tfprof.returncode, with_tfprof.stdout) == (without_tfprof.returncode, without_tfprof.stdout)
    assert without_tfprof.stdout.count("True") == 6


def test_the_traces_of_short_lived_children_are_stored(environment: Mapping[str, str], tf2_python: Path) -> None:
    completed = _run(
        environment, TFPROF + "-run", "--trace", "all", "--name", "kids", str(tf2_python), SCRIPT, "children"
    )
    assert (completed.returncode, completed.stdout) == (7, "0\n9\n0\n9\n"), completed.stderr
    jobs: list[dict[str, Any]] = json.loads(_run(environment, TFPROF, "jobs", "--json").stdout)["jobs"]
    kids = [job for job in jobs if job["name"] == "kids" and job["steps"]]
    assert [(job["steps"], job["traced"], job["lost"]) for job in kids] == [(11, 11, 0)] * 4
    for job in kids:
        view = json.loads(_run(environment, TFPROF, "op", job["uid"], "-select", "occurrence", "--json").stdout)
        assert '"MatMul"' in json.dumps(view)
