"""With `--exec`, TensorFlow jobs are seen, drained, named and closed like others."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.command import stored_jobs
from fakes.polling import until

pytestmark = pytest.mark.tf

TFPROF = str(Path(sys.executable).parent / "tfprof")
STEPS = 200
JOB = f"""
import os, sys
import tensorflow as tf
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    x = v1.placeholder(tf.float32, ())
    result = x + 1.0
    for _ in range({STEPS}):
        session.run(result, {{x: 1.0}})
print(os.getpid())
sys.exit(3)
"""


def _ended_jobs() -> list[dict[str, Any]]:
    return [row for row in stored_jobs() if row["state"] != "running"]


@pytest.mark.parametrize("python", ["tf1_python", "tf2_python"])
def test_all_steps_of_a_job_that_replaced_the_launcher_are_shown(
    request: pytest.FixtureRequest, private_store: Path, tmp_path: Path, python: str
) -> None:
    script = tmp_path / "supervised.py"
    script.write_text(JOB)
    command = [TFPROF + "-run", "--exec", str(request.getfixturevalue(python)), str(script)]
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as launcher:
        assert launcher.communicate(timeout=120)[0] == f"{launcher.pid}\n"
    assert launcher.returncode == 3
    (row,) = until(_ended_jobs, "the end of the job in the store")
    assert (row["steps"], row["lost"], row["state"], row["phase"]) == (STEPS, 0, "ended", "ended")
    assert (row["name"], row["pid"]) == ("supervised.py", launcher.pid)
    assert row["traced"] > 0
