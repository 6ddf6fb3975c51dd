"""Exported profiles of real jobs can be imported, and the copy of each job equals the job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.round_trip import differences
from tfprof.collector.store.reader import LocalStore

pytestmark = pytest.mark.tf

JOBS = Path(__file__).parent / "jobs"
EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = str(Path(sys.executable).parent / "tfprof-run")
CASES = {
    "tf1": [("fed_net.py",), ("session_paths.py",), ("session_threads.py",), ("failing_run.py", "3")],
    "tf2": [
        *(("fed_net.py",), ("session_paths.py",), ("session_threads.py",), ("failing_run.py", "3")),
        *(("convnet.py", "keras"), ("convnet.py", "tf_keras"), ("keras_steps.py", "tf_keras", "eager")),
        ("keras_steps.py", "tf_keras", "session"),
    ],
    "digits": [
        (str(EXAMPLES / "keras_digits.py"), "--epochs", "2"),
        (str(EXAMPLES / "session_digits.py"), "--steps", "200"),
    ],
}


@pytest.mark.parametrize(
    ("version", "job"), [(version, job) for version, jobs in CASES.items() for job in jobs], ids=str
)
def test_a_job_equals_its_copy_from_the_exported_profile(
    version: str, job: tuple[str, ...], request: pytest.FixtureRequest, private_store: Path
) -> None:
    python = request.getfixturevalue(f"{version}_python")
    script, *arguments = job
    command = [RUN, "--trace", "all", python, JOBS / script, *arguments]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(command, capture_output=True, timeout=240, check=False, env=environment)
    stored_job = LocalStore(private_store).job("last")
    assert stored_job.table("traces").num_rows
    assert stored_job.table("ops")["output_bytes"].to_pylist(), "the job has no recorded outputs"
    assert list(differences(private_store, f"{stored_job.info.uid:016x}")) == []
