"""The user's own profiler sessions have precedence over those of the shim."""

import json

import pytest
from fakes.armed_job import JOBS, ArmedJob, run_unarmed
from tfprof.formats import layout

pytestmark = pytest.mark.tf
SCRIPT = JOBS / "keras_own_profiler.py"


def run(python, folder, first_batch):
    """Run the job, whose own profiler begins with step ``first_batch`` + 1."""
    with ArmedJob(python, SCRIPT, folder, str(first_batch), TFPROF_TRACE="steps=3-8") as job:
        job.until_ready()
        reader = job.reader().take(ended=True)
        assert reader.fault() == ""
        reader.close()
        return job.finish(), reader


@pytest.mark.parametrize("first_batch", [1, 3], ids=["before the traced steps", "among the traced steps"])
def test_the_users_own_session_starts_and_writes_its_profile(tf2_python, tmp_path, first_batch):
    result, reader = run(tf2_python, tmp_path, first_batch)
    status, output, _ = run_unarmed(tf2_python, SCRIPT, str(first_batch))
    assert result[:2] == (status, output) == (0, ["own profile True"])
    refusals = [json.loads(record.data)["slug"] for record in reader.records_of(layout.REFUSED)]
    assert refusals == ["profiler-busy"]
    recorded_steps = [record.step for record in reader.records_of(layout.XSPACE)]
    assert recorded_steps == [step for step in range(3, 9) if not first_batch < step < first_batch + 5]


def test_the_profiler_is_free_for_the_users_own_full_trace(tf2_python, tmp_path):
    with ArmedJob(tf2_python, JOBS / "own_full_trace.py", tmp_path, TFPROF_TRACE="steps=3-4") as job:
        job.until_ready()
        reader = job.reader().take(ended=True)
        assert reader.fault() == ""
        reader.close()
        assert job.finish()[:2] == (0, ["[0.0, 2.0, 4.0, 6.0]", "64.0", "64.0", "True"])
    assert [record.step for record in reader.records_of(layout.XSPACE)] == [3, 4]
