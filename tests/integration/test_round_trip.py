"""Exported profiles of real jobs can be imported, and the copy of each job equals the job."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.profiled import ProfiledScripts
from fakes.round_trip import differences

pytestmark = pytest.mark.tf

JOBS = Path(__file__).parent / "jobs"
EXAMPLES = Path(__file__).parents[2] / "examples"
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
    version: str, job: tuple[str, ...], profiled_jobs: Callable[[str], ProfiledScripts]
) -> None:
    profiled = profiled_jobs(version)
    script, *arguments = job
    profiled.run("all", JOBS / script, *arguments, tries=1)
    assert profiled.job.table("traces").num_rows
    assert any(profiled.job.table("ops")["output_bytes"].to_pylist()), "the job has no recorded outputs"
    assert list(differences(profiled.store, profiled.uid)) == []
