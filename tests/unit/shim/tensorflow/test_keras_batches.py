"""Single batches of a fake Keras, as function calls and as session runs.

Tests shim/tensorflow/measured_call.py.
"""

import threading

import pytest
from fakes import eager_tensorflow
from tfprof.formats import layout
from tfprof.shim import core
from tfprof.shim.steps import thread_state
from tfprof.shim.tensorflow import function, keras, measured_call

BATCH_COUNT = 2000


@pytest.fixture
def fake_modules(monkeypatch, armed):
    """The fake modules of functions and of Keras, whose batches are function calls."""
    _, functions, module = eager_tensorflow.install(monkeypatch)
    keras.patch_models(module)
    function.patch(functions)
    return functions, module


@pytest.fixture
def model(monkeypatch, armed):
    """A model whose batches are session runs."""
    eager_tensorflow.install(monkeypatch)
    module = eager_tensorflow.module("keras.engine.training_v1")

    class Model:
        def _standardize_user_data(self):
            """Mark the class as one whose batches are session runs."""

        def train_on_batch(self, work):
            return work()

    Model.__module__ = module.__name__
    module.Model = Model
    keras.patch_models(module)
    yield Model()
    assert not thread_state.local.thread_state.is_in_step


def step_count(reader, kind, flag=0):
    """Return the number of steps of ``kind`` that have ``flag``."""
    return sum(span.count for span in reader.of_kind(kind) if span.flags & flag == flag)


def fail():
    raise ValueError


def test_a_single_batch_is_a_step_of_kind_batch_and_the_next_call_of_kind_function(fake_modules, read):
    step = fake_modules[0].Function("train_function")
    model = fake_modules[1].Model()
    for _ in range(3):
        model.train_on_batch(step)
    step()
    reader = read()
    assert step_count(reader, layout.BATCH) == 3
    assert step_count(reader, layout.FUNCTION) == 1


def test_short_single_batches_are_sampled_and_each_failure_is_recorded(fake_modules, read):
    failing: list[bool] = []

    def body():
        if failing:
            raise ValueError

    step = fake_modules[0].Function("train_function", body)
    model = fake_modules[1].Model()
    for _ in range(BATCH_COUNT):
        model.train_on_batch(step)
    failing.append(True)
    for _ in range(3):
        with pytest.raises(ValueError):
            model.train_on_batch(step)
    reader = read()
    assert (reader.count(layout.BATCH), reader.count(layout.FUNCTION)) == (BATCH_COUNT + 3, 0)
    assert len(reader.of_kind(layout.BATCH)) < BATCH_COUNT
    assert step_count(reader, layout.BATCH, layout.FLAG_FAILED) == 3


def test_after_a_batch_that_fails_early_the_next_call_is_a_function_call(fake_modules, read):
    step = fake_modules[0].Function("train_function")
    with pytest.raises(TypeError):
        fake_modules[1].Model().train_on_batch(None)
    step()
    reader = read()
    assert (reader.count(layout.BATCH), reader.count(layout.FUNCTION)) == (0, 1)


def test_calls_are_counted_after_a_batch_of_another_thread_failed_early(fake_modules, read):
    step = fake_modules[0].Function("train_function")
    model = fake_modules[1].Model()

    def fail_early():
        with pytest.raises(TypeError):
            model.train_on_batch(None)

    thread = threading.Thread(target=fail_early)
    thread.start()
    thread.join()
    for _ in range(BATCH_COUNT):
        step()
        model.train_on_batch(step)
    reader = read()
    assert (reader.count(layout.BATCH), reader.count(layout.FUNCTION)) == (BATCH_COUNT, BATCH_COUNT)
    assert len(reader.of_kind(layout.BATCH)) < BATCH_COUNT
    assert len(reader.of_kind(layout.FUNCTION)) < BATCH_COUNT


# -- batches of session runs ---------------------------------------------------------------------


def test_short_batches_of_runs_are_sampled_and_each_failure_is_recorded(model, read):
    for _ in range(BATCH_COUNT):
        model.train_on_batch(bool)
    for _ in range(3):
        with pytest.raises(ValueError):
            model.train_on_batch(fail)
    for _ in range(BATCH_COUNT):
        model.train_on_batch(bool)
    reader = read()
    assert reader.count(layout.BATCH) == 2 * BATCH_COUNT + 3
    assert len(reader.of_kind(layout.BATCH)) < BATCH_COUNT
    assert step_count(reader, layout.BATCH, layout.FLAG_FAILED) == 3


def test_a_traced_run_belongs_to_its_batch(model, read):
    def run_traced():
        batch = measured_call.enclosing_batch()
        ordinals.append(batch.ordinal)
        assert batch.tracker.kind == layout.BATCH
        batch.has_run = True
        assert measured_call.enclosing_batch() is None  # the second run of the same batch

    for _ in range(BATCH_COUNT):
        model.train_on_batch(bool)
    assert measured_call.enclosing_batch() is None
    ordinals: list[int] = []
    for _ in range(BATCH_COUNT):
        model.train_on_batch(run_traced)
    assert ordinals == list(range(BATCH_COUNT + 1, 2 * BATCH_COUNT + 1))
    reader = read()
    traced_spans = [span for span in reader.of_kind(layout.BATCH) if span.flags & layout.FLAG_TRACED]
    assert all(span.ordinal > BATCH_COUNT and span.total > 0 for span in traced_spans)
    assert BATCH_COUNT // 2 < sum(span.count for span in traced_spans) <= BATCH_COUNT
    assert reader.count(layout.BATCH) == 2 * BATCH_COUNT


def test_calls_within_a_counted_batch_are_no_steps(model, fake_modules, read):
    step = fake_modules[0].Function("inner")
    for _ in range(BATCH_COUNT):
        model.train_on_batch(step)
    reader = read()
    assert (reader.count(layout.BATCH), reader.count(layout.FUNCTION)) == (BATCH_COUNT, 0)
    step()
    assert read().count(layout.FUNCTION) == 1


def test_batches_of_several_threads_are_all_counted(model, read):
    def work():
        for _ in range(BATCH_COUNT):
            model.train_on_batch(bool)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read().count(layout.BATCH) == 4 * BATCH_COUNT


def test_an_observer_that_cannot_change_the_code_counts_failures_too(monkeypatch, armed, read):
    monkeypatch.setattr("tfprof.shim.steps.observer.with_call", lambda *_: None)
    eager_tensorflow.install(monkeypatch)
    module = eager_tensorflow.module("keras.engine.training_v1")
    module.Model = type(
        "Model",
        (),
        {
            "__module__": module.__name__,
            "_standardize_user_data": None,
            "train_on_batch": lambda _self, work: work(),
        },
    )
    keras.patch_models(module)
    model = module.Model()
    for _ in range(BATCH_COUNT):
        model.train_on_batch(bool)
    with pytest.raises(ValueError):
        model.train_on_batch(fail)
    reader = read()
    assert reader.count(layout.BATCH) == BATCH_COUNT + 1
    assert step_count(reader, layout.BATCH, layout.FLAG_FAILED) == 1


def test_batches_of_session_runs_do_not_count_as_time_in_steps_and_batches_of_functions_do(model, armed):
    state = core.state()
    assert layout.BATCH not in state.budgeted_kinds
    core.tracker(layout.BATCH, True)
    assert layout.BATCH in state.budgeted_kinds
