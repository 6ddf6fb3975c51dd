"""A job whose greenlets switch within a training step gets a note, and the step ends as usual."""

import json
import sys
from types import SimpleNamespace

import pytest
from tfprof.formats import layout
from tfprof.shim.steps.thread_state import local
from tfprof.shim.tensorflow import eager_steps


class Tape:
    """A gradient tape."""


@pytest.fixture
def notes(monkeypatch, read):
    """A function that returns the notes about greenlets."""
    monkeypatch.setattr(eager_steps, "is_eager", lambda: True)
    yield lambda: [
        json.loads(record.data)["slug"]
        for record in read().records_of(layout.REFUSED)
        if json.loads(record.data)["slug"] == "greenlet-switch"
    ]
    state = local.thread_state
    if state.tape_step is not None:
        state.tape_step.end(False)


def enter(current, monkeypatch):
    """Enter a tape in the greenlet ``current``."""
    monkeypatch.setitem(sys.modules, "greenlet", SimpleNamespace(getcurrent=lambda: current))
    tape = Tape()
    eager_steps._tape_entered(tape)
    return tape


def test_a_tape_within_that_of_another_greenlet_is_noted_once(notes, monkeypatch):
    first, second = object(), object()
    outer = enter(first, monkeypatch)
    inner = enter(first, monkeypatch)
    assert notes() == []
    tapes = [enter(second, monkeypatch) for _ in range(3)]
    assert notes() == ["greenlet-switch"]
    assert local.thread_state.tape_step.tape() is outer
    del inner, tapes


def test_nested_tapes_without_greenlets_are_not_noted(notes, monkeypatch):
    monkeypatch.delitem(sys.modules, "greenlet", raising=False)
    tapes = [Tape(), Tape()]
    for tape in tapes:
        eager_steps._tape_entered(tape)
    assert notes() == []
