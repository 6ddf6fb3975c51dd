"""Spans and windows of every kind of Keras loop, on TensorFlow 1.15 and 2.21."""

import json
import re

import pytest
from fakes.armed_job import JOBS, ArmedJob, run_unarmed
from fakes.channel_reader import ordinals
from fakes.log_text import without_numbers
from tfprof.formats import layout

pytestmark = pytest.mark.tf
SCRIPT = JOBS / "keras_steps.py"
#: Part of a warning whose op differs from run to run.
VARYING_OP = re.compile(r"Operation '.*' was changed by")
CASES = {
    "keras": ("tf2_python", "keras", "eager"),
    "keras-3.13": ("tf313_python", "keras", "eager"),
    "tf_keras": ("tf2_python", "tf_keras", "eager"),
    "tf_keras-session": ("tf2_python", "tf_keras", "session"),
    "tf1": ("tf1_python", "tf", "session"),
}
BATCHES = 30 + 7 + 4 + 10  # fit, train_on_batch, interrupted fit, failing fit


@pytest.fixture(params=list(CASES), scope="module")
def job(request, tmp_path_factory):
    fixture, package, mode = CASES[request.param]
    python = request.getfixturevalue(fixture)
    # At log level 0 TensorFlow logs everything, so the test sees each line that tfprof adds. The
    # hash seed fixes the order of sets.
    settings = {"TF_CPP_MIN_LOG_LEVEL": "0", "PYTHONHASHSEED": "0"}
    with ArmedJob(python, SCRIPT, tmp_path_factory.mktemp("job"), package, mode, **settings) as armed_job:
        armed_job.until_ready()
        armed_job.channel = armed_job.reader()
        armed_job.result = armed_job.finish()
        armed_job.channel.take(ended=True)
        armed_job.counts = {kind: armed_job.channel.count(kind) for kind in layout.SPAN_NAMES}
        armed_job.problems = (
            armed_job.channel.fault(),
            armed_job.channel.word("dropped_records"),
            armed_job.channel.word("dropped_spans"),
        )
        armed_job.channel.close()
        armed_job.mode = mode
        armed_job.unarmed = run_unarmed(python, SCRIPT, package, mode, **settings)
        yield armed_job


def spans(job, kind, flag=0):
    return [span for span in job.channel.of_kind(kind) if span.flags & flag == flag]


def test_the_job_ends_and_prints_exactly_as_without_tfprof(job):
    status, output, errors = job.result
    assert (status, output) == job.unarmed[:2]
    assert status == 1
    assert output
    assert "the user's own error" in errors
    assert VARYING_OP.sub("", without_numbers(errors)) == VARYING_OP.sub("", without_numbers(job.unarmed[2]))


def test_the_shim_has_no_error_and_drops_nothing(job):
    assert job.problems == ("", 0, 0)


def test_every_batch_is_a_span_and_counted_once(job):
    extra_batches = 20 if job.mode == "eager" else 0
    assert job.counts[layout.BATCH] == BATCHES + extra_batches
    assert sorted(ordinals(job.channel.of_kind(layout.BATCH))) == list(range(1, BATCHES + extra_batches + 1))
    assert job.counts[layout.TEST_BATCH] == 3 * 2 + 10
    assert job.counts[layout.PREDICT_BATCH] == 10


def test_fits_evaluations_and_epochs_are_spans(job):
    extra_fits = 1 if job.mode == "eager" else 0
    assert job.counts[layout.FIT] == 3 + extra_fits
    assert job.counts[layout.EPOCH] == 5 + 2 * extra_fits
    assert job.counts[layout.EVALUATE] == 4
    assert job.counts[layout.PREDICT] == 1


def test_the_batches_of_a_fit_name_their_epoch(job):
    parents = {span.ordinal: span.parent for span in job.channel.of_kind(layout.BATCH)}
    assert parents[1] == 1
    assert {span.parent for span in job.channel.of_kind(layout.BATCH)} >= {0, 1, 2, 3, 4}
    assert [span.parent for span in job.channel.of_kind(layout.EVALUATE)] == [1, 2, 3, 0]


def test_spans_that_an_exception_ended_are_flagged_as_failed(job):
    assert len(spans(job, layout.FIT, layout.FLAG_FAILED)) == 2
    assert len(spans(job, layout.EPOCH, layout.FLAG_FAILED)) == 1
    assert not spans(job, layout.BATCH, layout.FLAG_FAILED)
    assert not spans(job, layout.EVALUATE, layout.FLAG_FAILED)


def test_the_third_batch_is_the_first_traced_batch(job):
    traced = ordinals(spans(job, layout.BATCH, layout.FLAG_TRACED))
    assert traced[0] == 3
    assert {1, 2, 4}.isdisjoint(traced)


def test_the_ops_of_each_traced_batch_are_recorded(job):
    if job.mode != "eager":
        recorded_steps = [
            record.step for record in job.channel.records_of(layout.RUN_METADATA) if record.flags == layout.BATCH
        ]
        assert recorded_steps == ordinals(spans(job, layout.BATCH, layout.FLAG_TRACED))
        assert not job.channel.records_of(layout.XSPACE)
        return
    windows = [record for record in job.channel.records_of(layout.XSPACE) if record.flags == layout.BATCH]
    counts = [layout.XSPACE_HEAD.unpack_from(record.data)[1] for record in windows]
    recorded_steps = [record.step + at for record, count in zip(windows, counts, strict=True) for at in range(count)]
    assert recorded_steps == ordinals(spans(job, layout.BATCH, layout.FLAG_TRACED))
    assert all(b"BiasAddGrad:BiasAddGrad" in record.data for record in windows)
    batches = spans(job, layout.BATCH, layout.FLAG_TRACED)
    for record in windows:
        began, runs, _ = layout.XSPACE_HEAD.unpack_from(record.data)
        (batch,) = [span for span in batches if record.step in range(span.ordinal, span.ordinal + span.count)]
        assert runs in (1, batch.count)  # a call of a compiled function may run several batches
        assert began <= record.start_real
        assert batch.start <= record.start_mono
        assert record.duration <= batch.total


def test_function_calls_outside_of_keras_are_steps_with_windows(job):
    if job.mode != "eager":
        return
    assert job.counts[layout.FUNCTION] == 12
    windows = [record for record in job.channel.records_of(layout.XSPACE) if record.flags == layout.FUNCTION]
    assert [window.step for window in windows][:1] == [3]


def test_training_has_at_least_half_of_the_traces_after_the_first_ones(job):
    records = job.channel.records_of(layout.XSPACE) + job.channel.records_of(layout.RUN_METADATA)
    kinds = [record.flags for record in records]
    others = kinds.count(layout.TEST_BATCH) + kinds.count(layout.PREDICT_BATCH)
    assert others <= max(kinds.count(layout.BATCH), 2), "the first trace of each kind never waits"


def test_ops_have_graphs_with_shapes_and_the_frames_of_the_script(job):
    graphs, frames = job.channel.records_of(layout.GRAPH), job.channel.records_of(layout.FRAMES)
    assert len(graphs) == len(frames) > 0
    assert any(b"_output_shapes" in record.data for record in graphs)
    tables = [json.loads(record.data) for record in frames]
    assert any(str(SCRIPT) in table["files"] for table in tables)
    for table in tables:
        assert all(0 <= index < len(table["stacks"]) for index in table["nodes"].values())


def test_graph_numbers_start_at_one_and_have_no_gaps(job):
    numbers = {record.step for record in job.channel.records_of(layout.GRAPH)}
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
