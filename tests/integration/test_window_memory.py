"""The memory of ops in a window equals that of a traced session run, on a CPU."""

import json
from collections import Counter

import pytest
from fakes.armed_job import JOBS, ArmedJob
from tfprof.collector.decoders.session import Session
from tfprof.collector.decoders.session_ops import executions
from tfprof.collector.decoders.xspace import BYTES_MAX, EVENTS_MAX
from tfprof.formats import layout

pytestmark = pytest.mark.tf
SCRIPT = JOBS / "window_memory.py"


@pytest.fixture(scope="module")
def job(onednn, tf2_python, tmp_path_factory):
    with ArmedJob(tf2_python, SCRIPT, tmp_path_factory.mktemp("job")) as armed_job:
        armed_job.until_ready()
        armed_job.onednn = onednn
        armed_job.report = json.loads(armed_job.output[-1])
        armed_job.channel = armed_job.reader().take(ended=True)
        armed_job.channel.close()
        assert armed_job.finish()[0] == 0
        yield armed_job


def test_the_ops_of_a_window_have_the_memory_of_a_traced_session_run(job):
    window, *_ = [record for record in job.channel.records_of(layout.XSPACE) if record.flags == layout.FUNCTION]
    bytes_of_type = Counter()
    for row in executions(Session(window.data[layout.XSPACE_HEAD.size :], BYTES_MAX, EVENTS_MAX), 0):
        bytes_of_type[row.label.decode()] += row.memory.total
    op_types = {op_type for op_type, size in job.report["ops"].items() if size > 1000}
    assert {"_MklNativeConv2D" if job.onednn else "Conv2D", "TopKV2"} <= op_types
    # A limitation (docs/tracing.md): oneDNN's allocator reports only large allocations to a
    # profiler session.
    expected = job.report["large" if job.onednn else "ops"]
    assert max(expected.values()) > 256 << 10
    assert {op_type: bytes_of_type[op_type] for op_type in op_types} == {
        op_type: expected[op_type] for op_type in op_types
    }


def test_the_allocator_reports_only_within_a_window_and_never_in_a_forked_child(job):
    assert job.report["switch"] == [False, True, False, False]
