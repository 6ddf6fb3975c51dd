"""The spans and records of real sessions of TensorFlow 1.15 and 2.21.

Tests shim/cpython/tracebacks.py, shim/tensorflow/callables.py, shim/tensorflow/runs.py,
shim/tensorflow/session.py.
"""

import re

import pytest
from fakes.armed_job import JOBS, ArmedJob, run_unarmed
from fakes.channel_reader import ordinals
from tfprof.collector.summaries.steps import call_label
from tfprof.formats import layout

pytestmark = pytest.mark.tf
SCRIPT = JOBS / "session_paths.py"
RUNS = {layout.INIT: 1, layout.TRAIN: 8 + 3, layout.RUN: 1 + 14 + 4 + 10 + 3}
LOG = re.compile(r"^(WARNING: All log|[IWE]0000 ).*\n", re.MULTILINE)


@pytest.fixture(params=["tf1_python", "tf2_python"], scope="module")
def python(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def unarmed(python):
    return run_unarmed(python, SCRIPT)


@pytest.fixture(params=["all", "every=2", "off"], scope="module")
def job(request, python, tmp_path_factory):
    with ArmedJob(python, SCRIPT, tmp_path_factory.mktemp("job"), TFPROF_TRACE=request.param) as armed_job:
        armed_job.until_ready()
        armed_job.trace = request.param
        armed_job.channel = armed_job.reader().take(ended=True)
        armed_job.channel.close()
        armed_job.result = armed_job.finish()
        yield armed_job


def runs_of(job):
    return [span for span in job.channel.spans if span.kind in layout.RUN_KINDS]


def test_the_job_sees_the_same_as_without_tfprof(job, unarmed):
    status, output, errors = job.result
    assert (status, output) == unarmed[:2]
    assert LOG.sub("", errors) == LOG.sub("", unarmed[2])


def test_every_run_is_a_span(job):
    for kind, number in RUNS.items():
        runs = job.channel.of_kind(kind)
        assert sum(span.count for span in runs) == job.channel.count(kind) == number
        assert sorted(ordinals(runs)) == list(range(1, number + 1))
        assert all(span.low <= span.total // span.count <= span.high <= span.total for span in runs)
    assert not any(job.channel.count(kind) for kind in set(layout.RUN_KINDS) - set(RUNS))
    assert sum(span.count for span in job.channel.of_kind(layout.PARTIAL_RUN)) == 1
    assert job.channel.fault() == ""


def test_failed_runs_are_flagged(job):
    failed = [span for span in runs_of(job) if span.flags & layout.FLAG_FAILED]
    assert sum(span.count for span in failed) == 3


def test_every_traced_run_is_recorded(job):
    traced = {
        (span.kind, number)
        for span in runs_of(job)
        if span.flags & layout.FLAG_TRACED and not span.flags & layout.FLAG_FAILED
        for number in range(span.ordinal, span.ordinal + span.count)
    }
    recorded = {(record.flags, record.step) for record in job.channel.records_of(layout.RUN_METADATA)}
    if job.trace == "off":
        assert not recorded
        assert len(traced) == 3  # the runs that the job itself traced
        return
    assert recorded == traced
    assert all(
        record.data[:1] == b"\x0a" and len(record.data) > 100 for record in job.channel.records_of(layout.RUN_METADATA)
    )
    assert job.channel.word("dropped_traces") == 0
    if job.trace == "all":
        assert len(recorded) == sum(RUNS.values()) - 3


def test_spans_of_different_runs_have_different_keys(job):
    keys = {span.key for span in runs_of(job)}
    assert sorted(call_label(layout.RUN, key) for key in keys) == [
        "1 feed, 1 fetch",  # of the loss
        "1 feed, 1 fetch",  # of the op that fails
        "1 feed, 1 fetch, 1 target",
        "1 feed, 1 target",
        "1 fetch",
        "1 target",
    ]


def test_the_graph_is_sent_with_the_first_trace(job):
    graphs = job.channel.records_of(layout.GRAPH)
    if job.trace == "off":
        assert not graphs
    else:
        assert b"loss" in graphs[0].data
        assert b"_output_shapes" in graphs[0].data
        assert b"session_paths.py" in job.channel.records_of(layout.FRAMES)[0].data


def test_the_hello_page_identifies_the_job(job):
    hello = job.channel.hello()
    assert hello["name"] == "session_paths.py"
    assert hello["framework_version"].split(".")[0] in "12"
    assert job.channel.word("launch") == 0x1234
    launch = job.channel.word("launch")
    assert job.announcements() == {f"{job.pid}-{job.channel.word('uid'):016x}": f"channel\n{launch:016x}\n"}


@pytest.mark.parametrize(("trace", "runs"), [("all", 1), ("steps=1-2", 12)], ids=["traced", "plain"])
def test_an_uncaught_error_prints_the_same_as_without_tfprof(python, trace, runs, tmp_path):
    script = JOBS / "failing_run.py"
    errors = run_unarmed(python, script, str(runs))[2]
    assert errors.count("Traceback") >= 4
    with ArmedJob(python, script, tmp_path, str(runs), TFPROF_TRACE=trace) as job:
        result = job.finish()
    assert LOG.sub("", result[2]) == LOG.sub("", errors)
