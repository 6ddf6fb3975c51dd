"""A channel survives forks, closed descriptors, full rings, kills and refusals.

The jobs run on the fake TensorFlow, which starts quickly."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from fakes.armed_job import FAKE_TENSORFLOW, JOBS, MODERN, REFUSING_MEMORY_FILES, ROOT, ArmedJob, name_of, run_unarmed
from fakes.channel_reader import ChannelReader, channels, ordinals
from fakes.polling import until
from tfprof.formats import layout

SCRIPT = JOBS / "quick_session.py"


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a job."""

    def start(scenario, trace="all", python=sys.executable, **settings):
        return ArmedJob(python, SCRIPT, tmp_path, scenario, fake=True, TFPROF_TRACE=trace, **settings)

    return start


@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_sessions_are_traced_in_every_interpreter(start, python):
    with start("plain", python=python) as job:
        reader = job.until_ready().reader().take(ended=True)
        reader.close()
        assert job.finish()[0] == 0
    assert sorted(ordinals(reader.of_kind(layout.RUN))) == list(range(1, 11))
    assert [record.step for record in reader.records_of(layout.RUN_METADATA)] == list(range(1, 11))
    assert reader.hello()["python"].split(".")[:2] == name_of(python).split(".")[:2] or python == MODERN[0]
    assert {span.thread for span in reader.spans} == {job.pid}


@pytest.mark.parametrize("python", MODERN, ids=name_of)
@pytest.mark.parametrize("trace", ["all", "off", "steps=1-2"])
def test_tracebacks_are_the_same_as_without_tfprof_in_every_interpreter(start, python, trace):
    status, output, errors = run_unarmed(python, SCRIPT, "errors", fake=True)
    assert errors.count("Traceback") == 3
    with start("errors", python=python, trace=trace) as job:
        assert job.until_ready().finish() == (status, output, errors)


@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_a_patched_module_looks_as_before(start, python):
    with start("describe", python=python) as job:
        assert job.finish() == run_unarmed(python, SCRIPT, "describe", fake=True)


def test_copies_of_a_callable_that_are_traced_are_released_with_it(start):
    with start("callables") as job:
        reader = job.until_ready().reader().take(ended=True)
        reader.close()
        assert job.finish()[1] == ["{'buffers': 0, 'callables': 0}"]
    assert len(reader.records_of(layout.RUN_METADATA)) == 10
    assert [span.flags for span in reader.of_kind(layout.RUN)] == [
        layout.FLAG_TRACED | layout.FLAG_SETUP,
        layout.FLAG_TRACED,
    ]


@pytest.mark.parametrize("trace", ["budget=1%", "off"])
def test_a_callable_that_the_job_traces_changes_no_counts_of_others(start, trace):
    with start("traced_callable", trace=trace) as job:
        reader = job.until_ready().reader().take(ended=True)
        reader.close()
        assert job.finish()[0] == 0
    assert reader.count(layout.RUN) == 6001
    entries = reader.of_kind(layout.RUN)
    assert 5000 < sum(max(span.count, 1) for span in entries) <= 6001
    assert len(entries) < 3000
    assert reader.word("traced") == len(reader.records_of(layout.RUN_METADATA))


def test_a_session_of_a_class_with_its_own_attributes_runs_as_without_tfprof(start):
    with start("odd") as job:
        reader = job.until_ready().reader().take(ended=True)
        reader.close()
        assert job.finish()[::2] == (0, "")
    assert reader.count(layout.RUN) == 10
    assert reader.word("faults") == 0


def test_a_forked_child_has_its_own_channel(start):
    with start("fork") as job:
        reader = job.until_ready().reader()
        child_pid = int(job.output[0].split()[1])
        parent_inode = os.fstat(reader.fd).st_ino
        until(lambda: len(job.announcements()) == 2, "two announcements")
        assert Path(channels(child_pid)[0]).stat().st_ino != parent_inode
        child_reader = ChannelReader.of_process(child_pid)
        until(lambda: child_reader.count(layout.RUN) == 5, "the runs of the child")
        reader.take(ended=True).close()
        child_reader.take(ended=True).close()
        job.finish()
    assert child_reader.word("uid") != reader.word("uid")
    assert (child_reader.word("pid"), reader.word("pid")) == (child_pid, job.pid)
    assert sorted(ordinals(reader.of_kind(layout.RUN))) == list(range(1, 16))
    assert sorted(ordinals(child_reader.of_kind(layout.RUN))) == list(range(1, 6))
    assert {span.thread for span in child_reader.spans} == {child_pid}


def test_a_job_that_closes_the_descriptor_before_the_first_trace_loses_traces_but_no_span(start):
    with start("close_before") as job:
        reader = job.until_ready().reader()
        job.go_on().until_ready()
        assert job.channels() == []
        reader.take(ended=True).close()
        status, output, errors = job.finish()
    assert (status, errors, json.loads(output[0])) == (0, "", [0] * 20)
    assert sorted(ordinals(reader.of_kind(layout.RUN))) == list(range(1, 11))
    assert reader.records == []
    assert reader.word("dropped_traces") == 1
    assert [span.flags for span in reader.of_kind(layout.RUN)] == [layout.FLAG_TRACED, 0]


def test_a_descriptor_of_the_job_with_the_channels_old_number_is_not_written_to(start):
    with start("close_after") as job:
        status, output, errors = job.until_ready().finish()
    assert (status, errors, json.loads(output[0])) == (0, "", [0] * 20)


def test_a_full_ring_drops_whole_traces_and_counts_them(start):
    with start("many", TFPROF_RING="1M") as job:
        reader = job.until_ready().reader().take()
        reader.close()
        assert job.finish()[0] == 0
    count = len(reader.records_of(layout.RUN_METADATA))
    assert [record.step for record in reader.records_of(layout.RUN_METADATA)] == list(range(1, count + 1))
    assert count + reader.word("dropped_traces") == 40000
    assert reader.word("dropped_records") >= reader.word("dropped_traces") > 0
    assert reader.count(layout.RUN) == 40000
    assert reader.word("faults") == 0


def test_a_full_ring_accepts_records_again_after_a_read(start):
    with start("endless", TFPROF_RING="1M") as job:
        reader = job.until_ready().reader()
        until(lambda: reader.word("dropped_traces"), "a full ring")
        last_seq = reader.take().records[-1].seq
        until(lambda: reader.take().records[-1].seq > last_seq, "new records")
        seqs = [record.seq for record in reader.records]
        reader.close()
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_killed_job_leaves_all_its_records(start):
    with start("killed") as job:
        reader = job.until_ready().reader().take()
        job.go_on()
        assert job.process.wait(30) == -signal.SIGKILL
        reader.take(ended=True).close()
    assert len(reader.records_of(layout.RUN_METADATA)) == 150
    assert sorted(ordinals(reader.of_kind(layout.RUN))) == list(range(1, 151))


def test_a_job_without_memory_files_runs_and_announces_the_reason(start, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(REFUSING_MEMORY_FILES)
    paths = [ROOT / "shim/inject", site, FAKE_TENSORFLOW]
    with start("plain", PYTHONPATH=os.pathsep.join(map(str, paths))) as job:
        job.until_ready()
        assert job.channels() == []
        assert job.finish()[0::2] == (0, "")
    (text,) = job.announcements().values()
    reason, launch = text.splitlines()
    assert reason == "refused memfd-refused the system refuses anonymous memory files: Operation not permitted"
    assert len(launch) == 16


def test_the_shim_obeys_and_acknowledges_a_policy_of_the_agent(start):
    with start("wait", trace="off") as job:
        reader = job.until_ready().reader()
        reader.set_word("policy_mode", layout.MODE_STEPS)
        reader.set_word("policy_first", 3)
        reader.set_word("policy_last", 4)
        reader.set_word("policy", 7)
        job.go_on().until_ready()
        reader.take().close()
        job.finish()
    assert [record.step for record in reader.records_of(layout.RUN_METADATA)] == [3, 4]
    assert reader.word("policy_seen") == 7


def test_an_invalid_policy_is_refused_and_changes_nothing(start):
    with start("wait", trace="steps=2-2") as job:
        reader = job.until_ready().reader()
        reader.set_word("policy_mode", 99)
        reader.set_word("policy", 1)
        job.go_on().until_ready()
        reader.take().close()
        assert job.finish()[0] == 0
    assert [record.step for record in reader.records_of(layout.RUN_METADATA)] == [2]
    assert json.loads(reader.records_of(layout.REFUSED)[0].data)["slug"] == "trace-policy"
    assert reader.word("policy_seen") == 0


def test_an_invalid_trace_setting_is_refused_and_the_default_applies(start):
    with start("plain", trace="sometimes") as job:
        reader = job.until_ready().reader().take()
        reader.close()
        assert job.finish()[0] == 0
    assert "sometimes" in json.loads(reader.records_of(layout.REFUSED)[0].data)["text"]
    assert [record.step for record in reader.records_of(layout.RUN_METADATA)] == [3]


@pytest.mark.parametrize("python", MODERN, ids=name_of)
def test_disarming_restores_everything(start, python):
    with start("disarm", python=python) as job:
        reader = job.until_ready().reader()
        status, output, errors = job.finish()
    reader.take(ended=True)
    reader.close()
    assert (status, output, errors) == (0, ["tensorflow True", "True", "[]"], "")
    assert reader.word("detached") == 1
    assert reader.count(layout.RUN) == 10
