"""Eager training loops, and calls of models and concrete functions.

Each step is counted once. It has a trace, or counts as missed.
"""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from fakes.armed_job import JOBS, ROOT, ArmedJob, name_of, run_unarmed
from fakes.channel_reader import ChannelReader
from fakes.log_text import without_numbers
from tfprof.collector.decoders.interner import Interner
from tfprof.collector.decoders.xspace import xspace
from tfprof.formats import layout

pytestmark = pytest.mark.tf
SCRIPT = JOBS / "eager_steps.py"
KINDS = {"function": layout.FUNCTION, "eager": layout.EAGER, "call": layout.CALL}
SHORT_CALLS = 200  # calls of a function at the start of the job


@pytest.fixture(params=["tf1_python", "tf2_python"], scope="module")
def job(request, tmp_path_factory):
    python = request.getfixturevalue(request.param)
    settings = {"TFPROF_TRACE": "all", "TFPROF_RING": "256M"}
    with ArmedJob(python, SCRIPT, tmp_path_factory.mktemp("job"), **settings) as armed_job:
        armed_job.until_ready()
        armed_job.channel = armed_job.reader()
        armed_job.result = armed_job.finish()
        armed_job.channel.take(ended=True)
        yield armed_job
        armed_job.channel.close()


@pytest.fixture
def step_counts(job):
    """Number of steps of each kind that the job ran."""
    return json.loads(job.output[-1])


def test_the_job_ends_and_prints_as_without_tfprof(job):
    status, output, errors = run_unarmed(job.process.args[0], SCRIPT)
    assert job.result[0] == status == 0
    assert job.output == output
    assert without_numbers(job.result[2]) == without_numbers(errors)


def test_each_step_is_counted_once_and_has_a_span(job, step_counts):
    assert {name: job.channel.count(kind) for name, kind in KINDS.items()} == step_counts
    spans = Counter()
    for name, kind in KINDS.items():
        for span in job.channel.of_kind(kind):
            spans[name] += span.count
    assert spans == step_counts


def test_the_shim_has_no_error_and_drops_nothing(job):
    words = ("faults", "dropped_records", "dropped_spans", "dropped_traces")
    assert [job.channel.word(name) for name in words] == [0] * len(words), job.channel.fault()


def test_failed_steps_are_flagged(job):
    failed_spans = [
        span for kind in KINDS.values() for span in job.channel.of_kind(kind) if span.flags & layout.FLAG_FAILED
    ]
    assert sorted(span.kind for span in failed_spans) == [layout.FUNCTION, layout.EAGER]


def test_each_step_has_ops_or_is_missed_because_of_another_thread(job, step_counts):
    records = job.channel.records_of(layout.XSPACE)
    if name_of(job.process.args[0]) == "tf1":
        assert not records
        assert [refusal["slug"] for refusal in refusals(job)] == ["profiler-missing"]
        return
    assert len(records) + job.channel.word("missed") == sum(step_counts.values())
    assert 0 < job.channel.word("missed") < 24  # only one of three threads is recorded at a time
    empty = Counter(record.flags for record in records if not op_types(record))
    assert empty <= Counter({layout.FUNCTION: 1, layout.EAGER: 1})  # a failed step may have no ops
    short_calls = [record for record in records if record.flags == layout.FUNCTION and record.step <= SHORT_CALLS]
    assert [record.step for record in short_calls] == list(range(1, SHORT_CALLS + 1))
    assert all({b"Sin", b"Sum"} < op_types(record) for record in short_calls)


def refusals(job):
    return [json.loads(bytes(record.data)) for record in job.channel.records_of(layout.REFUSED)]


def op_types(record):
    """Return the types of a step's recorded ops."""
    names = Interner()
    session = xspace(bytes(record.data)[layout.XSPACE_HEAD.size :], record.start_real, 0, names)
    texts = {row["id"]: row["text"] for row in names.new_names().to_pylist() if row["kind"] == 2}
    return {texts[number] for number in session.ops["label"].to_pylist()}


def shim_without_c(folder):
    """Return the import path of a copy of the shim without its C part."""
    for name in ("formats", "shim"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return str(folder / "shim/inject")


COUNTED_JOB = JOBS / "counted_failures.py"


def checked_spans(reader, kind, failures):
    """Return the spans of an ended job of counted_failures.py; ``failures`` of its steps failed."""
    reader.take(ended=True)
    spans = reader.of_kind(kind)
    reader.close()
    assert reader.fault() == ""
    assert reader.count(kind) == 1200
    assert sum(span.count for span in spans if span.flags & layout.FLAG_FAILED) == failures
    return spans


def has_c_part(job):
    return "_native.abi3.so" in Path(f"/proc/{job.pid}/maps").read_text()


@pytest.mark.parametrize(
    ("tf_version", "path", "kind", "failures"),
    [
        ("tf1", "session", layout.RUN, 300),
        ("tf2", "session", layout.RUN, 300),
        ("tf1", "callable", layout.RUN, 300),
        ("tf2", "callable", layout.RUN, 300),
        ("tf2", "function", layout.FUNCTION, 300),
        ("tf2", "concrete", layout.FUNCTION, 300),
        ("tf2", "tape", layout.EAGER, 240),
        ("tf313", "session", layout.RUN, 300),
        ("tf313", "callable", layout.RUN, 300),
        ("tf313", "function", layout.FUNCTION, 300),
        ("tf313", "concrete", layout.FUNCTION, 300),
        ("tf313", "tape", layout.EAGER, 240),
    ],
)
def test_steps_that_are_only_counted_are_counted_exactly_and_flagged_if_they_fail(
    tf_version, path, kind, failures, armed_forks
):
    job = armed_forks(tf_version).start(COUNTED_JOB, path, TFPROF_TRACE="off").until_ready()
    assert has_c_part(job)
    reader = ChannelReader.of_process(job.pid)
    job.go_on()
    assert job.finish().status == 0
    spans = checked_spans(reader, kind, failures)
    assert sum(bool(span.flags & layout.FLAG_SAMPLED) for span in spans) > 100


@pytest.mark.parametrize(
    ("tf_version", "path", "kind"),
    [
        ("tf1", "session", layout.RUN),
        ("tf2", "callable", layout.RUN),
        ("tf2", "function", layout.FUNCTION),
        ("tf2", "concrete", layout.FUNCTION),
    ],
)
def test_without_the_c_part_the_same_steps_are_counted_and_all_are_timed(tf_version, path, kind, request, tmp_path):
    python = request.getfixturevalue(tf_version + "_python")
    variables = {"TFPROF_TRACE": "off", "PYTHONPATH": shim_without_c(tmp_path)}
    with ArmedJob(python, COUNTED_JOB, tmp_path, path, **variables) as job:
        job.until_ready()
        assert not has_c_part(job)
        reader = job.reader()
        assert job.finish()[0] == 0
    spans = checked_spans(reader, kind, 300)
    assert sum(span.count for span in spans) == 1200
    assert not [span for span in spans if span.flags & layout.FLAG_SAMPLED]


def test_a_call_ends_even_if_the_job_keeps_an_exception_that_was_raised_in_it(tf2_python, tmp_path):
    with ArmedJob(tf2_python, JOBS / "kept_errors.py", tmp_path) as armed_job:
        armed_job.until_ready()
        reader = armed_job.reader()
        status, _, errors = armed_job.finish()
        reader.take(ended=True)
        counts = {kind: reader.count(kind) for kind in (layout.CALL, layout.FUNCTION)}
        reader.close()
    assert status == 0
    assert "Traceback" not in errors
    assert counts == {layout.CALL: 20, layout.FUNCTION: 20}


@pytest.mark.parametrize(
    ("following", "kind", "recorded"),
    [("fit", layout.BATCH, 8), ("call", layout.CALL, 8), ("function", layout.FUNCTION, 8), ("thread", layout.BATCH, 7)],
)
def test_training_steps_without_an_optimizer_do_not_keep_later_steps_from_being_traced(
    tf2_python, tmp_path, following, kind, recorded
):
    variables = {"TFPROF_TRACE": "all", "TFPROF_RING": "64M"}
    with ArmedJob(tf2_python, JOBS / "unapplied_gradients.py", tmp_path, following, **variables) as job:
        job.until_ready()
        reader = job.reader()
        assert job.finish()[0] == 0
    reader.take(ended=True)
    kinds = Counter(record.flags for record in reader.records_of(layout.XSPACE))
    missed, fault = reader.word("missed"), reader.fault()
    reader.close()
    assert not fault
    assert missed == 0
    assert kinds == {layout.EAGER: recorded - 4, kind: 4}
