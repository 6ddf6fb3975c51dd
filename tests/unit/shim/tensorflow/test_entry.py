"""Being told of calls: what is called stays what it was."""

import collections
import functools
import inspect
import pickle
import sys
import traceback
from typing import Any
from unittest import mock

import pytest
from tfprof.shim import guard
from tfprof.shim.tensorflow import entry


class Thing:
    """Something of the job's."""

    def method(self, first, second=2, *, third=3):
        """Say what it was given, and how deep the stack is."""
        return first, second, third, len(inspect.stack(0))

    def captured(self, first):
        """Use its arguments in a scope of its own, which makes cells of them."""
        return next((self, first) for _ in range(1) if first)

    def failing(self):
        raise LookupError("the job's own")

    def decorated(self):
        return 1

    @functools.wraps(decorated)
    def wrapper(self, *arguments):
        return Thing.__dict__["wrapper"].__wrapped__(self, *arguments)


def generator(first):
    yield first


@pytest.fixture
def told(armed):
    """The list of what was told."""
    return []


def test_calls_are_told_and_look_ups_are_not(told):
    thing = Thing()
    method = thing.method
    entry.observe(Thing, "method", told.append)
    again = thing.method
    assert told == []
    for number in range(3):
        assert (method, again, thing.method)[number](number)[:3] == (number, 2, 3)
    assert told == [thing] * 3


def test_the_function_is_the_same_one_and_looks_as_before(told):
    before = Thing.method, str(inspect.signature(Thing.method)), inspect.getsource(Thing.method)
    depth = Thing().method(1)[3]
    entry.observe(Thing, "method", told.append)
    assert Thing.method is before[0]
    assert (str(inspect.signature(Thing.method)), inspect.getsource(Thing.method)) == before[1:]
    assert inspect.getfullargspec(Thing.method).kwonlyargs == ["third"]
    assert pickle.loads(pickle.dumps(Thing.method)) is Thing.method
    double = mock.create_autospec(Thing, instance=True)
    with pytest.raises(TypeError):
        double.method()
    assert Thing().method(1)[3] == depth


def test_more_arguments_are_told_also_those_that_an_inner_function_takes(told):
    entry.observe(Thing, "captured", lambda *given: told.append(given), 2)
    thing = Thing()
    assert thing.captured(5) == (thing, 5)
    assert told == [(thing, 5)]


def test_what_a_decorator_wraps_is_told_of(told):
    entry.observe(Thing, "wrapper", told.append)
    thing: Any = Thing()
    assert thing.wrapper() == 1
    assert len(told) == 1


def test_an_exception_shows_no_frame_of_ours(told):
    entry.observe(Thing, "failing", told.append)
    with pytest.raises(LookupError) as caught:
        Thing().failing()
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["failing"]


def test_a_tracer_sees_the_lines_that_it_would_see(told):
    def seen():
        lines = []

        def trace(frame, event, _argument):
            if frame.f_code.co_filename == __file__:
                lines.append((frame.f_code.co_name, event, frame.f_lineno))
                return trace
            return None

        sys.settrace(trace)
        try:
            Thing().captured(1)
        finally:
            sys.settrace(None)
        return lines

    before = seen()
    entry.observe(Thing, "captured", told.append)
    assert seen() == before
    assert len(told) == 1


def test_what_is_no_python_function_is_called_by_one(told):
    class Counter(collections.Counter[str]):
        """A class with a builtin of its own."""

        get = collections.Counter.get

    entry.observe(Counter, "get", told.append)
    counter = Counter(a=1)
    assert counter.get("a") == 1
    assert told == [counter]
    assert Counter.get.__name__ == "get"


def test_a_generator_is_told_of_when_it_is_made(told, monkeypatch):
    here = sys.modules[__name__]
    monkeypatch.setattr(here, "generator", generator)
    entry.observe(here, "generator", told.append)
    assert list(here.generator(1)) == [1]
    assert str(inspect.signature(here.generator)) == "(first)"
    assert told == [1]


def test_all_is_put_back(told, armed):
    codes = Thing.method.__code__, Thing.failing.__code__
    entry.observe(Thing, "method", told.append)
    entry.observe(Thing, "method", told.append)
    armed.disarm()
    assert (Thing.method.__code__, Thing.failing.__code__) == codes
    Thing().method(1)
    assert told == []


def test_an_error_of_a_note_stays_with_us(told, armed, monkeypatch):

    monkeypatch.setattr(guard, "_raise", False)

    def callback(_thing):
        raise KeyError("ours")

    entry.observe(Thing, "decorated", callback)
    assert Thing().decorated() == 1


def endings(told):
    """Return a note that is told the end, too: whether it failed."""

    def callback(_thing):
        return entry.EndCallback(told.append)

    return callback


@pytest.mark.parametrize(("name", "failed"), [("method", False), ("captured", False), ("failing", True)])
def test_the_end_is_told_before_the_caller_goes_on(told, name, failed):
    entry.observe(Thing, name, endings(told), ends=True)
    thing = Thing()
    try:
        getattr(thing, name)(*([] if failed else [1]))
    except LookupError:
        assert told == [True]  # though the traceback keeps the frame
    assert told == [failed]


def test_the_end_of_what_is_no_python_function_is_told(told):
    class Counter(collections.Counter[str]):
        """A class with a builtin of its own."""

        pop = collections.Counter.pop

    entry.observe(Counter, "pop", endings(told), ends=True)
    counter = Counter(a=1)
    assert counter.pop("a") == 1
    with pytest.raises(KeyError):
        counter.pop("a")
    assert told == [False, True]


def test_a_note_that_fails_is_no_end(told, monkeypatch):
    monkeypatch.setattr(guard, "_raise", False)
    entry.observe(Thing, "method", lambda _thing: told.append(1 / 0), ends=True)
    assert Thing().method(1)[0] == 1
    assert told == []
