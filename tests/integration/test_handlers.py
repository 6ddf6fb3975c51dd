"""An exception of a signal handler or a thread, at any line of the shim, reaches the job once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.armed_job import FAKE_TENSORFLOW, JOBS, MODERN, ROOT, environment, name_of

INTERPRETERS = [python for python in MODERN if name_of(python).startswith("3.7")] + [Path(sys.executable)]
#: How an exception is raised (see jobs/handlers.py) -> N: every N-th line is tried. For `handler`
#: the interpreters take turns, and together try every line.
LINE_INTERVALS = {"handler": len(INTERPRETERS), "timer": 11, "outside": 11}


@pytest.mark.parametrize("way", LINE_INTERVALS)
@pytest.mark.parametrize("python", INTERPRETERS, ids=name_of)
def test_the_job_sees_each_exception_once(python, way, tmp_path):
    (tmp_path / "announce").mkdir()
    path = os.pathsep.join(map(str, (ROOT / "tests", FAKE_TENSORFLOW)))
    environ = {**environment(tmp_path, TFPROF_RING="1M"), "PYTHONPATH": path, "TFPROF_DEBUG": ""}
    share = f"{INTERPRETERS.index(python)}/{LINE_INTERVALS[way]}"
    completed = subprocess.run(
        [str(python), str(JOBS / "handlers.py"), str(ROOT / "shim"), share, way],
        env=environ,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    *errors, count = completed.stdout.splitlines()
    assert errors == []
    assert count.endswith("cases run")
    assert int(count.split()[0]) * LINE_INTERVALS[way] > 1000


@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_the_job_sees_an_exception_that_is_raised_as_a_finalizer_begins(python, tmp_path):
    environ = environment(tmp_path, TFPROF_RING="1M", TFPROF_DEBUG="", PYTHONPATH="")
    command = [str(python), str(JOBS / "finalizers.py"), str(ROOT / "shim")]
    completed = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert (completed.stdout, completed.stderr) == ("4 finalizers\n", "")
