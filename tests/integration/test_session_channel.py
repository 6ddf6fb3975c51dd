"""A channel survives forks, closed descriptors, full rings, kills and refusals.

The jobs run on the fake TensorFlow, which starts quickly.
"""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from fakes.armed_job import FAKE_TENSORFLOW, JOBS, MODERN, ROOT, ArmedJob, bare, name_of
from fakes.channel_reader import ChannelReader, channels, ordinals
from fakes.polling import until
from tfprof.formats import layout

SCRIPT = JOBS / "quick_session.py"


@pytest.fixture
def start(tmp_path):
    def start(what, trace="all", python=sys.executable, **more):
        return ArmedJob(python, SCRIPT, tmp_path, what, fake=True, TFPROF_TRACE=trace, **more)

    return start


@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_sessions_are_traced_in_every_interpreter(start, python):
    with start("plain", python=python) as job:
        read = job.until_ready().reader().take(ended=True)
        read.close()
        assert job.finish()[0] == 0
    assert sorted(ordinals(read.of_kind(layout.RUN))) == list(range(1, 11))
    assert [record.step for record in read.records_of(layout.RUN_METADATA)] == list(range(1, 11))
    assert read.hello()["python"].startswith(name_of(python)[:3]) or python == MODERN[0]
    assert {span.thread for span in read.spans} == {job.pid}


@pytest.mark.parametrize("python", MODERN, ids=name_of)
@pytest.mark.parametrize("trace", ["all", "off", "steps=1-2"])
def test_tracebacks_are_the_same_as_without_tfprof_in_every_interpreter(start, python, trace):
    status, output, errors = bare(python, SCRIPT, "errors", fake=True)
    assert errors.count("Traceback") == 3
    with start("errors", python=python, trace=trace) as job:
        assert job.until_ready().finish() == (status, output, errors)


@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_a_patched_module_looks_as_before(start, python):
    with start("describe", python=python) as job:
        assert job.finish() == bare(python, SCRIPT, "describe", fake=True)


def test_callables_are_traced_by_variants_that_are_released_with_them(start):
    with start("callables") as job:
        read = job.until_ready().reader().take(ended=True)
        read.close()
        assert job.finish()[1] == ["{'buffers': 0, 'callables': 0}"]
    assert len(read.records_of(layout.RUN_METADATA)) == 10
    assert [span.flags for span in read.of_kind(layout.RUN)] == [
        layout.FLAG_TRACED | layout.FLAG_SETUP,
        layout.FLAG_TRACED,
    ]


@pytest.mark.parametrize("trace", ["budget=1%", "off"])
def test_a_callable_that_the_job_traces_changes_no_counts_of_others(start, trace):
    with start("traced_callable", trace=trace) as job:
        read = job.until_ready().reader().take(ended=True)
        read.close()
        assert job.finish()[0] == 0
    assert read.count(layout.RUN) == 6001
    entries = read.of_kind(layout.RUN)
    assert 5000 < sum(max(span.count, 1) for span in entries) <= 6001
    assert len(entries) < 3000
    assert read.word("traced") == len(read.records_of(layout.RUN_METADATA))


def test_a_session_of_a_class_with_its_own_attributes_runs_as_without_tfprof(start):
    with start("odd") as job:
        read = job.until_ready().reader().take(ended=True)
        read.close()
        assert job.finish()[::2] == (0, "")
    assert read.count(layout.RUN) == 10
    assert read.word("faults") == 0


def test_a_forked_child_has_its_own_channel(start):
    with start("fork") as job:
        read = job.until_ready().reader()
        child = int(job.output[0].split()[1])
        inherited = os.fstat(read.fd).st_ino
        until(lambda: len(job.announced()) == 2, "two announcements")
        assert Path(channels(child)[0]).stat().st_ino != inherited
        theirs = ChannelReader.of(child)
        until(lambda: theirs.count(layout.RUN) == 5, "the runs of the child")
        read.take(ended=True).close()
        theirs.take(ended=True).close()
        job.finish()
    assert theirs.word("uid") != read.word("uid")
    assert (theirs.word("pid"), read.word("pid")) == (child, job.pid)
    assert sorted(ordinals(read.of_kind(layout.RUN))) == list(range(1, 16))
    assert sorted(ordinals(theirs.of_kind(layout.RUN))) == list(range(1, 6))
    assert {span.thread for span in theirs.spans} == {child}


def test_a_job_that_closes_the_descriptor_before_the_first_trace_loses_traces_but_no_span(start):
    with start("close_before") as job:
        read = job.until_ready().reader()
        job.go_on().until_ready()
        assert job.channels() == []
        read.take(ended=True).close()
        status, output, errors = job.finish()
    assert (status, errors, json.loads(output[0])) == (0, "", [0] * 20)
    assert sorted(ordinals(read.of_kind(layout.RUN))) == list(range(1, 11))
    assert read.records == []
    assert read.word("dropped_traces") == 1
    assert [span.flags for span in read.of_kind(layout.RUN)] == [layout.FLAG_TRACED, 0]


def test_a_descriptor_of_the_job_with_the_channels_old_number_is_not_written_to(start):
    with start("close_after") as job:
        status, output, errors = job.until_ready().finish()
    assert (status, errors, json.loads(output[0])) == (0, "", [0] * 20)


def test_a_full_ring_drops_whole_traces_and_counts_them(start):
    with start("many", TFPROF_RING="1M") as job:
        read = job.until_ready().reader().take()
        read.close()
        assert job.finish()[0] == 0
    kept = len(read.records_of(layout.RUN_METADATA))
    assert [record.step for record in read.records_of(layout.RUN_METADATA)] == list(range(1, kept + 1))
    assert kept + read.word("dropped_traces") == 40000
    assert read.word("dropped_records") >= read.word("dropped_traces") > 0
    assert read.count(layout.RUN) == 40000
    assert read.word("faults") == 0


def test_a_full_ring_accepts_records_again_after_a_read(start):
    with start("endless", TFPROF_RING="1M") as job:
        read = job.until_ready().reader()
        until(lambda: read.word("dropped_traces"), "a full ring")
        last = read.take().records[-1].seq
        until(lambda: read.take().records[-1].seq > last, "new records")
        numbers = [record.seq for record in read.records]
        read.close()
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_killed_job_leaves_all_its_records(start):
    with start("killed") as job:
        read = job.until_ready().reader().take()
        job.go_on()
        assert job.process.wait(30) == -signal.SIGKILL
        read.take(ended=True).close()
    assert len(read.records_of(layout.RUN_METADATA)) == 150
    assert sorted(ordinals(read.of_kind(layout.RUN))) == list(range(1, 151))


def test_a_job_without_memory_files_runs_and_announces_the_reason(start, tmp_path):
    theirs = tmp_path / "site"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text(
        "import os\ndef refuse(*_): raise PermissionError(1, 'Operation not permitted')\nos.memfd_create = refuse\n"
    )
    paths = [ROOT / "shim/inject", theirs, FAKE_TENSORFLOW]
    with start("plain", PYTHONPATH=os.pathsep.join(map(str, paths))) as job:
        job.until_ready()
        assert job.channels() == []
        assert job.finish()[0::2] == (0, "")
    (text,) = job.announced().values()
    reason, launch = text.splitlines()
    assert reason == "refused memfd-refused the system refuses anonymous memory files: Operation not permitted"
    assert len(launch) == 16


def test_the_shim_obeys_and_acknowledges_a_policy_of_the_agent(start):
    with start("wait", trace="off") as job:
        read = job.until_ready().reader()
        read.set_word("policy_mode", layout.MODE_STEPS)
        read.set_word("policy_first", 3)
        read.set_word("policy_last", 4)
        read.set_word("policy", 7)
        job.go_on().until_ready()
        read.take().close()
        job.finish()
    assert [record.step for record in read.records_of(layout.RUN_METADATA)] == [3, 4]
    assert read.word("policy_seen") == 7


def test_an_invalid_policy_is_refused_and_changes_nothing(start):
    with start("wait", trace="steps=2-2") as job:
        read = job.until_ready().reader()
        read.set_word("policy_mode", 99)
        read.set_word("policy", 1)
        job.go_on().until_ready()
        read.take().close()
        assert job.finish()[0] == 0
    assert [record.step for record in read.records_of(layout.RUN_METADATA)] == [2]
    assert json.loads(read.records_of(layout.REFUSED)[0].data)["slug"] == "trace-policy"
    assert read.word("policy_seen") == 0


def test_an_invalid_trace_setting_is_refused_and_the_default_applies(start):
    with start("plain", trace="sometimes") as job:
        read = job.until_ready().reader().take()
        read.close()
        assert job.finish()[0] == 0
    assert "sometimes" in json.loads(read.records_of(layout.REFUSED)[0].data)["text"]
    assert [record.step for record in read.records_of(layout.RUN_METADATA)] == [3, 4, 5]


@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_disarming_restores_everything(start, python):
    with start("disarm", python=python) as job:
        read = job.until_ready().reader()
        status, output, errors = job.finish()
    read.take(ended=True)
    read.close()
    assert (status, output, errors) == (0, ["tensorflow True", "True", "[]"], "")
    assert read.word("detached") == 1
    assert read.count(layout.RUN) == 10
