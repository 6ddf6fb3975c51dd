"""Sessions that run in several threads, with every run traced, raise no error in the job."""

import pytest
from fakes.armed_job import JOBS, ArmedJob
from tfprof.formats import layout

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("level", ["auto", "full"])
@pytest.mark.parametrize("interpreter", ["tf1_python", "tf2_python"])
def test_runs_in_many_threads_do_not_fail_because_of_traces(request, interpreter, level, tmp_path):
    python = request.getfixturevalue(interpreter)
    settings = {"TFPROF_TRACE": "all", "TFPROF_TRACE_LEVEL": level, "TFPROF_RING": "64M"}
    with ArmedJob(python, JOBS / "session_threads.py", tmp_path, **settings) as job:
        reader = job.until_ready().reader().take(ended=True)
        reader.close()
        status, output, _ = job.finish()
    assert (status, output) == (0, ["[] True"])
    assert reader.fault() == ""
    runs = [span for span in reader.spans if span.kind in layout.RUN_KINDS]
    successful_runs = [span for span in runs if not span.flags & layout.FLAG_FAILED]
    ordinals = sorted(
        (span.kind, number) for span in successful_runs for number in range(span.ordinal, span.ordinal + span.count)
    )
    assert len(set(ordinals)) == len(ordinals) >= 6 * 60 * 2
    assert all(span.flags & layout.FLAG_TRACED for span in successful_runs)
    assert len({span.thread for span in successful_runs}) >= 8
    recorded_steps = [(record.flags, record.step) for record in reader.records_of(layout.RUN_METADATA)]
    assert sorted(recorded_steps) == ordinals
    assert reader.word("dropped_spans") == reader.word("dropped_traces") == 0
