"""Sessions that run in several threads, with every run traced, raise no error in the job."""

import pytest
from fakes.armed_job import JOBS, ArmedJob
from tfprof.formats import layout

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("level", ["auto", "full"])
@pytest.mark.parametrize("environment", ["tf1_python", "tf2_python"])
def test_runs_in_many_threads_do_not_fail_because_of_traces(request, environment, level, tmp_path):
    python = request.getfixturevalue(environment)
    more = {"TFPROF_TRACE": "all", "TFPROF_TRACE_LEVEL": level, "TFPROF_RING": "64M"}
    with ArmedJob(python, JOBS / "session_threads.py", tmp_path, **more) as job:
        read = job.until_ready().reader().take(ended=True)
        read.close()
        status, output, _ = job.finish()
    assert (status, output) == (0, ["[] True"])
    assert read.fault() == ""
    runs = [span for span in read.spans if span.kind in layout.RUN_KINDS]
    good = [span for span in runs if not span.flags & layout.FLAG_FAILED]
    ordinals = sorted((span.kind, number) for span in good for number in range(span.ordinal, span.ordinal + span.count))
    assert len(set(ordinals)) == len(ordinals) >= 6 * 60 * 2
    assert all(span.flags & layout.FLAG_TRACED for span in good)
    assert len({span.thread for span in good}) >= 8
    kept = [(record.flags, record.step) for record in read.records_of(layout.RUN_METADATA)]
    assert sorted(kept) == ordinals
    assert read.word("dropped_spans") == read.word("dropped_traces") == 0
