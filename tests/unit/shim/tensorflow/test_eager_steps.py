"""Training steps of eager ops, and calls of models before, within and after them."""

import pytest
from fakes.open_channel import open_channel
from tfprof.formats import layout
from tfprof.shim.steps.thread_state import local
from tfprof.shim.tensorflow import eager_steps


class Tape:
    """A gradient tape."""


class Model:
    """A model of Keras."""

    name = "model"

    def predict_on_batch(self):
        """Exist: other layers have no such method."""


@pytest.fixture
def counts(monkeypatch, armed):
    """A function that returns the numbers of training steps and of calls of models."""
    monkeypatch.setattr(eager_steps, "is_eager", lambda: True)
    yield lambda: tuple(open_channel().words[layout.COUNTS_AT // 8 + kind] for kind in (layout.EAGER, layout.CALL))
    local.thread_state.forget()


def call_model(times=1):
    for _ in range(times):
        end_callback = eager_steps._model_called(Model(), 1.0)
        del end_callback


def train(calls=0, applies=True):
    """Take a gradient, call a model ``calls`` times, and apply the gradient if it ``applies``."""
    tape = Tape()
    eager_steps._tape_entered(tape)
    call_model()
    eager_steps._tape_left(tape, None)
    end_callback = eager_steps._gradient_called(tape)
    del end_callback
    call_model(calls)
    if applies:
        end_callback = eager_steps._optimizer_called(None)
        del end_callback


def test_calls_of_models_up_to_the_optimizer_belong_to_the_step(counts):
    train()
    for _ in range(3):
        train(calls=2)
    call_model(5)
    assert counts() == (4, 5)


def test_calls_of_models_after_gradients_that_no_optimizer_applies_are_counted(counts):
    train()
    train(applies=False)
    call_model(20)
    assert counts() == (2, 20 - 8)
    train(applies=False)
    call_model(20)
    local.thread_state.end_stopped_step()
    assert counts() == (3, 20 - 8 + 20)


def test_calls_of_models_within_the_optimizer_belong_to_the_step(counts):
    train()
    train(applies=False)
    end_callback = eager_steps._optimizer_called(None)
    call_model(20)
    assert counts() == (1, 0)
    del end_callback
    assert counts() == (2, 0)
