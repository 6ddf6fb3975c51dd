"""Single batches of Keras: as function calls, and as session runs, of a fake Keras."""

import threading

import pytest
from fakes import eager_tensorflow
from tfprof.formats import layout
from tfprof.shim import core
from tfprof.shim.tensorflow import function, keras_batches, traced_run

MANY = 2000


@pytest.fixture
def kit(monkeypatch, armed):
    """The fake functions and Keras, whose batches are function calls."""
    _, functions, module = eager_tensorflow.install(monkeypatch)
    keras_batches.patch(module)
    function.patch(functions)
    return functions, module


@pytest.fixture
def model(monkeypatch, armed):
    """A model whose batches are session runs."""
    eager_tensorflow.install(monkeypatch)
    module = eager_tensorflow.module("keras.engine.training_v1")

    class Model:
        def _standardize_user_data(self):
            """Identify the version."""

        def train_on_batch(self, work):
            return work()

    Model.__module__ = module.__name__
    module.Model = Model
    keras_batches.patch(module)
    yield Model()
    assert not function.busy_threads


def step_count(reader, kind, flag=0):
    """Return the number of steps of ``kind`` that have ``flag``."""
    return sum(span.count for span in reader.of_kind(kind) if span.flags & flag == flag)


def fail():
    raise ValueError


def test_a_single_batch_is_a_batch_and_the_next_call_is_not(kit, read):
    step = kit[0].Function("train_function")
    model = kit[1].Model()
    for _ in range(3):
        model.train_on_batch(step)
    step()
    reader = read()
    assert step_count(reader, layout.BATCH) == 3
    assert step_count(reader, layout.FUNCTION) == 1


def test_short_single_batches_are_sampled_and_each_failure_is_recorded(kit, read):
    failing: list[bool] = []

    def body():
        if failing:
            raise ValueError

    step = kit[0].Function("train_function", body)
    model = kit[1].Model()
    for _ in range(MANY):
        model.train_on_batch(step)
    failing.append(True)
    for _ in range(3):
        with pytest.raises(ValueError):
            model.train_on_batch(step)
    reader = read()
    assert (reader.count(layout.BATCH), reader.count(layout.FUNCTION)) == (MANY + 3, 0)
    assert len(reader.of_kind(layout.BATCH)) < MANY
    assert step_count(reader, layout.BATCH, layout.FLAG_FAILED) == 3


def test_after_a_batch_that_fails_early_the_next_call_is_a_function_call(kit, read):
    step = kit[0].Function("train_function")
    with pytest.raises(TypeError):
        kit[1].Model().train_on_batch(None)
    step()
    reader = read()
    assert (reader.count(layout.BATCH), reader.count(layout.FUNCTION)) == (0, 1)


def test_calls_are_counted_while_another_thread_has_a_batch_that_failed_early(kit, read):
    step = kit[0].Function("train_function")
    model = kit[1].Model()

    def fail_early():
        with pytest.raises(TypeError):
            model.train_on_batch(None)

    thread = threading.Thread(target=fail_early)
    thread.start()
    thread.join()
    for _ in range(MANY):
        step()
        model.train_on_batch(step)
    reader = read()
    assert (reader.count(layout.BATCH), reader.count(layout.FUNCTION)) == (MANY, MANY)
    assert len(reader.of_kind(layout.BATCH)) < MANY
    assert len(reader.of_kind(layout.FUNCTION)) < MANY


# -- batches of session runs ---------------------------------------------------------------------


def test_short_batches_of_runs_are_sampled_and_each_failure_is_recorded(model, read):
    for _ in range(MANY):
        model.train_on_batch(bool)
    for _ in range(3):
        with pytest.raises(ValueError):
            model.train_on_batch(fail)
    for _ in range(MANY):
        model.train_on_batch(bool)
    reader = read()
    assert reader.count(layout.BATCH) == 2 * MANY + 3
    assert len(reader.of_kind(layout.BATCH)) < MANY
    assert step_count(reader, layout.BATCH, layout.FLAG_FAILED) == 3


def test_a_traced_run_belongs_to_its_batch_even_if_the_batch_is_only_counted(model, read):
    def traced():
        batch = traced_run._batch()
        numbers.append(batch.ordinal)
        assert batch.tracker.kind == layout.BATCH
        assert traced_run._batch() is None  # a batch's second run

    for _ in range(MANY):
        model.train_on_batch(bool)
    assert traced_run._batch() is None
    numbers: list[int] = []
    for _ in range(MANY):
        model.train_on_batch(traced)
    assert numbers == list(range(MANY + 1, 2 * MANY + 1))
    reader = read()
    traced_spans = [span for span in reader.of_kind(layout.BATCH) if span.flags & layout.FLAG_TRACED]
    assert all(span.ordinal > MANY and span.total > 0 for span in traced_spans)
    assert MANY // 2 < sum(span.count for span in traced_spans) <= MANY
    assert reader.count(layout.BATCH) == 2 * MANY


def test_calls_within_a_counted_batch_are_no_steps(model, kit, read):
    step = kit[0].Function("inner")
    for _ in range(MANY):
        model.train_on_batch(step)
    reader = read()
    assert (reader.count(layout.BATCH), reader.count(layout.FUNCTION)) == (MANY, 0)
    step()
    assert read().count(layout.FUNCTION) == 1


def test_threads_count_their_own_batches(model, read):
    def work():
        for _ in range(MANY):
            model.train_on_batch(bool)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read().count(layout.BATCH) == 4 * MANY


def test_an_observer_that_cannot_change_the_code_counts_failures_too(monkeypatch, armed, read):
    monkeypatch.setattr("tfprof.shim.tensorflow.call_observer.with_call", lambda *_: None)
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
    keras_batches.patch(module)
    model = module.Model()
    for _ in range(MANY):
        model.train_on_batch(bool)
    with pytest.raises(ValueError):
        model.train_on_batch(fail)
    reader = read()
    assert reader.count(layout.BATCH) == MANY + 1
    assert step_count(reader, layout.BATCH, layout.FLAG_FAILED) == 1


def test_the_kind_of_single_batches_has_a_budget(model, armed):
    state = core.state()
    assert layout.BATCH not in state.budgeted_kinds
    core.tracker(layout.BATCH, True)
    assert layout.BATCH in state.budgeted_kinds
