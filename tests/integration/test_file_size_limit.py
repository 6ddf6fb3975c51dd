"""A job with a limit of file sizes is not ended by SIGXFSZ; lost records are counted.

Tests shim/file_size_signal.py.
"""

import pytest
from fakes.armed_job import JOBS, ArmedJob
from tfprof.formats import layout

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("limit", [0, 2000, 80_000])
def test_no_signal_ends_a_job_that_may_not_write_large_files(tf2_python, tmp_path, limit):
    script = JOBS / "file_size_limit.py"
    with ArmedJob(tf2_python, script, tmp_path, str(limit), TFPROF_TRACE="steps=3-100", TFPROF_RING="16M") as job:
        job.until_ready()
        reader = job.reader()
        status, output, errors = job.finish()
        reader.take(ended=True)
        records = [record for record in reader.records if record.kind == layout.XSPACE]
        refusals = [record for record in reader.records if record.kind == layout.REFUSED]
        words = reader.word("faults"), reader.word("dropped_traces"), reader.count(layout.FUNCTION)
        reader.close()
    assert (status, output) == (0, ["set() set()"]), errors
    assert len(records) == 10, (refusals, [len(record.data) for record in records])
    assert [b"profiler-failed" in refusal.data for refusal in refusals] == [True]
    assert words == (0, 3 if limit == 80_000 else 0, 24)
