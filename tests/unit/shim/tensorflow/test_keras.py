"""Keras observed through its list of callbacks, with a fake Keras."""

import gc
import inspect
import json
import os
import sys
import traceback
import types
from typing import Any, NamedTuple

import pytest
from fakes import eager_tensorflow
from fakes.open_channel import open_channel
from tfprof.formats import layout
from tfprof.shim import clock
from tfprof.shim.steps import thread_state, window
from tfprof.shim.tensorflow import function, keras


class FakeTensorFlow(NamedTuple):
    """A fake TensorFlow: its profiler, and its modules of functions and of Keras."""

    profiler: Any
    functions: Any
    keras: Any


@pytest.fixture
def fake_tf(monkeypatch, armed):
    """The fake profiler, functions and Keras, observed by the shim."""
    monkeypatch.delitem(sys.modules, "greenlet", raising=False)  # tests of the page import it
    modules = FakeTensorFlow(*eager_tensorflow.install(monkeypatch))
    keras.patch_callbacks(modules.keras)
    function.patch(modules.functions)
    yield modules
    window.drop_current()
    assert not keras._open_calls
    assert not thread_state.local.thread_state.loops


def fit(module, steps_per_execution=1, steps=None, **options):
    model = module.Model(steps_per_execution)
    callbacks = module.CallbackList(model, steps)
    model.fit(callbacks, **options)
    return callbacks


def step_count(reader, kind, flag=0):
    """Return the number of steps of ``kind`` that have ``flag``."""
    return sum(span.count for span in reader.of_kind(kind) if span.flags & flag == flag)


def test_a_fit_its_epochs_and_batches_are_spans_within_each_other(fake_tf, read):
    fit(fake_tf.keras, epochs=3, calls=4)
    reader = read()
    (whole_fit,) = reader.of_kind(layout.FIT)
    epochs = reader.of_kind(layout.EPOCH)
    assert [span.ordinal for span in epochs] == [1, 2, 3]
    assert step_count(reader, layout.BATCH) == 12
    assert {span.parent for span in reader.of_kind(layout.BATCH)} == {1, 2, 3}
    for span in [*epochs, *reader.of_kind(layout.BATCH)]:
        assert whole_fit.start <= span.start
        assert span.start + span.total <= whole_fit.start + whole_fit.total


def test_the_timing_of_each_batch_counts_as_cost(fake_tf, read, monkeypatch):
    monkeypatch.setenv("TFPROF_TRACE", "off")
    fit(fake_tf.keras, epochs=1, calls=10)
    before = read().word("self_ns")
    fit(fake_tf.keras, epochs=1, calls=100)
    assert read().word("traced") == 0
    assert read().word("self_ns") - before > 100 * 100


def test_callbacks_are_called_as_without_tfprof(fake_tf, read):
    calls = fit(fake_tf.keras, epochs=1, calls=1).events
    assert calls == [
        ("on_train_begin",),
        ("on_epoch_begin", 0),
        ("on_train_batch_begin", 0),
        ("on_train_batch_end", 0),
        ("on_epoch_end", 0),
        ("on_train_end",),
    ]


def test_validation_inside_of_a_fit_lies_in_its_epoch(fake_tf, read):
    fit(fake_tf.keras, epochs=2, calls=2, validation_calls=3)
    reader = read()
    assert [span.parent for span in reader.of_kind(layout.EVALUATE)] == [1, 2]
    assert step_count(reader, layout.TEST_BATCH) == 6
    assert step_count(reader, layout.BATCH) == 4
    assert step_count(reader, layout.FIT) == 1


def test_several_batches_in_one_call_count_as_several_up_to_the_end_of_the_data(fake_tf, read):
    fit(fake_tf.keras, steps_per_execution=4, steps=10, epochs=2, calls=3)
    batches = read().of_kind(layout.BATCH)
    assert [span.count for span in batches] == [4, 4, 2, 4, 4, 2]
    assert [span.ordinal for span in batches] == [1, 5, 9, 11, 15, 19]


def test_an_evaluation_counts_several_batches_in_one_call_up_to_the_end_of_its_data(fake_tf, read):
    model = fake_tf.keras.Model(steps_per_execution=4)
    model.evaluate(fake_tf.keras.CallbackList(model, steps=10), calls=3)
    assert [span.count for span in read().of_kind(layout.TEST_BATCH)] == [4, 4, 2]


@pytest.mark.parametrize(
    ("data_name", "count_name"), [("_eval_data_handler", "inferred_steps"), ("_eval_epoch_iterator", "num_batches")]
)
def test_a_validation_counts_the_batches_of_its_own_data(fake_tf, read, data_name, count_name):
    model = fake_tf.keras.Model(steps_per_execution=4)
    setattr(model, data_name, types.SimpleNamespace(**{count_name: 7}))
    model.fit(fake_tf.keras.CallbackList(model, steps=12), epochs=2, calls=3, validation_calls=2)
    reader = read()
    assert [span.count for span in reader.of_kind(layout.TEST_BATCH)] == [4, 3, 4, 3]
    assert step_count(reader, layout.BATCH) == 24


def test_a_batch_without_data_is_no_step(fake_tf, read):
    def work_with_data(batches):
        remaining = [batches]

        def work():
            remaining[0] -= 1
            if remaining[0] < 0:
                raise StopIteration

        return work

    for _ in range(2):
        fit(fake_tf.keras, calls=9, work=work_with_data(3))
    reader = read()
    assert step_count(reader, layout.BATCH) == 6
    numbers = [span.ordinal + offset for span in reader.of_kind(layout.BATCH) for offset in range(span.count)]
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]
    assert not step_count(reader, layout.FIT, layout.FLAG_FAILED)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("the user's")])
def test_a_fit_that_an_exception_ends_is_flagged_and_the_exception_is_the_same(fake_tf, read, error):
    def work():
        raise error

    with pytest.raises(type(error)) as caught:
        fit(fake_tf.keras, work=work)
    assert caught.value is error
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:] == ["fit", "fit", "_batches", "work"]
    del caught
    error.__traceback__ = None
    gc.collect()
    reader = read()
    for kind in (layout.FIT, layout.EPOCH, layout.BATCH):
        assert step_count(reader, kind, layout.FLAG_FAILED) == 1


def test_a_new_fit_ends_a_failed_fit_whose_exception_is_still_held(fake_tf, read):
    def work():
        raise ValueError

    with pytest.raises(ValueError) as held:
        fit(fake_tf.keras, work=work)
    fit(fake_tf.keras, calls=2)
    reader = read()
    assert step_count(reader, layout.FIT) == 2
    assert step_count(reader, layout.FIT, layout.FLAG_FAILED) == 1
    assert all(span.parent == 2 for span in reader.of_kind(layout.BATCH) if not span.flags & layout.FLAG_FAILED)
    assert held.value.__traceback__ is not None


#: Keras's loop of TensorFlow 1.15 to 2.1: a helper and a context manager begin it.
LOOP = """
import contextlib

def _call_begin_hook(callbacks):
    callbacks.on_train_begin()

@contextlib.contextmanager
def on_start(callbacks):
    _call_begin_hook(callbacks)
    yield
    callbacks.on_train_end()

def fit(callbacks, work):
    with on_start(callbacks):
        work()
"""


@pytest.fixture
def fit_in_context(fake_tf):
    """A function that calls this loop with new callbacks from a file of the job's."""
    loop = {"__name__": "keras.engine.training_v2"}
    exec(compile(LOOP, "/packages/keras/engine/training_v2.py", "exec"), loop)
    job = {**loop, "__name__": "__main__", "new_callbacks": fake_tf.keras.CallbackList}
    return eval(compile("lambda work: fit(new_callbacks(), work)", "/work/train.py", "eval"), job)


def test_a_fit_that_a_context_manager_began_is_running(fake_tf, fit_in_context, read):
    fit_in_context(lambda: fake_tf.keras.Model().evaluate(fake_tf.keras.CallbackList(), calls=3))
    reader = read()
    assert (step_count(reader, layout.FIT), step_count(reader, layout.FIT, layout.FLAG_FAILED)) == (1, 0)
    assert step_count(reader, layout.TEST_BATCH) == 3


def test_a_new_fit_ends_a_failed_one_that_a_context_manager_began(fit_in_context, read):
    def work():
        raise ValueError

    with pytest.raises(ValueError) as held:
        fit_in_context(work)
    fit_in_context(bool)
    reader = read()
    assert (step_count(reader, layout.FIT), step_count(reader, layout.FIT, layout.FLAG_FAILED)) == (2, 1)
    assert held.value.__traceback__ is not None


def test_a_function_after_a_failed_fit_whose_exception_is_held_is_a_step(fake_tf, fit_in_context, read, monkeypatch):
    now = clock.mono()
    monkeypatch.setattr(clock, "mono", lambda: now)
    monkeypatch.setattr(keras, "is_of_framework", lambda frame: frame.f_globals["__name__"].startswith("keras"))

    def work():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as held:
        fit_in_context(work)
    now += 3600 * 10**9  # the notebook is at rest
    fake_tf.functions.Function("train")()
    reader = read()
    assert step_count(reader, layout.FUNCTION) == 1
    assert step_count(reader, layout.FIT, layout.FLAG_FAILED) == 1
    assert all(span.total < 10**9 for span in reader.of_kind(layout.FIT))
    assert held.value.__traceback__ is not None


def test_an_epoch_that_fails_before_its_first_batch_ends_when_it_began(fake_tf, read, monkeypatch):
    now = clock.mono()
    monkeypatch.setattr(clock, "mono", lambda: now)
    callbacks = fake_tf.keras.CallbackList()
    callbacks.on_train_begin()
    now += 1000
    callbacks.on_epoch_begin(0)
    (keras_call,) = thread_state.local.thread_state.loops
    keras_call.end(layout.FLAG_FAILED, keras_call.last_seen)  # as after an exception that is held
    assert [(span.start, span.total) for span in read().of_kind(layout.EPOCH)] == [(now, 0)]


def test_a_loop_of_the_job_with_the_callbacks_in_an_attribute_is_running(fake_tf, read):
    class Loop:
        def __init__(self):
            self.callbacks = fake_tf.keras.CallbackList()

        def fit(self):
            self.callbacks.on_train_begin()
            fake_tf.keras.Model().evaluate(fake_tf.keras.CallbackList(), calls=3)
            self.callbacks.on_train_end()

    Loop().fit()
    assert step_count(read(), layout.FIT, layout.FLAG_FAILED) == 0


def test_fits_left_open_are_failed_when_the_process_ends(fake_tf, read):
    callbacks = fake_tf.keras.CallbackList()
    callbacks.on_train_begin()
    keras._at_exit()
    assert step_count(read(), layout.FIT, layout.FLAG_FAILED) == 1


def test_methods_keep_their_metadata(fake_tf, armed):
    observed = fake_tf.keras.CallbackList
    method = observed.on_train_begin
    armed.disarm()
    assert observed.on_train_begin is method
    assert inspect.isfunction(observed.__dict__["on_train_begin"])
    assert str(inspect.signature(method)) == "(self, *arguments)"
    thread_state.local.thread_state.loops.clear()


def test_a_subclass_that_calls_its_parent_counts_each_batch_once(fake_tf, read):
    class Subclass(fake_tf.keras.CallbackList):  # type: ignore[name-defined, misc]  # a fake from a fixture
        def on_train_batch_end(self, *arguments):
            super().on_train_batch_end(*arguments)

    model = fake_tf.keras.Model()
    model.fit(Subclass(model), calls=5)
    assert step_count(read(), layout.BATCH) == 5


@pytest.mark.parametrize(
    ("trace", "traced"), [("every=20", range(17, 201, 20)), ("steps=10-11,16-17", [9, 13, 17]), ("every=3", [1, 5, 9])]
)
def test_a_call_of_several_batches_is_traced_if_one_of_them_is_selected(fake_tf, read, monkeypatch, trace, traced):
    monkeypatch.setenv("TFPROF_TRACE", trace)
    fit(fake_tf.keras, steps_per_execution=4, epochs=1, calls=3 if trace == "every=3" else 50)
    assert [record.step for record in read().records_of(layout.XSPACE)] == list(traced)


def in_child(work):
    """Run ``work`` in a forked child and return what it returns, a JSON value."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as file:
        return json.loads(file.read())


def counts(armed):
    """Return the numbers of steps that the process's channel counts, by kind."""
    kinds = (layout.FIT, layout.EPOCH, layout.BATCH, layout.TEST_BATCH, layout.FUNCTION)
    words = open_channel().words
    return [words[layout.COUNTS_AT // 8 + kind] for kind in kinds]


def test_a_child_forked_within_a_fit_counts_its_own_steps(fake_tf, armed):
    step = fake_tf.functions.Function("step")
    counts_of_child: list[list[int]] = []

    def steps():
        for _ in range(3):
            step()
        fit(fake_tf.keras, epochs=2, calls=3, validation_calls=1)
        return counts(armed)

    def work():
        if not counts_of_child:
            counts_of_child.append(in_child(steps))

    fit(fake_tf.keras, epochs=1, calls=2, work=work)
    assert counts_of_child == [[1, 2, 6, 2, 3]]
    assert counts(armed) == [1, 1, 2, 0, 0]


def test_a_forked_child_that_continues_a_fit_counts_its_remaining_steps(fake_tf, armed):
    pipe = os.pipe()
    events: list[str] = []

    def work():
        events.append("batch")
        if events.count("batch") == 2 and not os.fork():
            events.append("forked")

    fit(fake_tf.keras, epochs=1, calls=4, work=work)
    if "forked" in events:  # this is the child
        os.write(pipe[1], json.dumps(counts(armed)).encode())
        os._exit(0)
    os.wait()
    assert json.loads(os.read(pipe[0], 1000)) == [1, 0, 2, 0, 0]
    assert counts(armed) == [1, 1, 4, 0, 0]
    for end in pipe:
        os.close(end)
