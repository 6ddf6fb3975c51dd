"""Observed calls: the observed function stays the same."""

import collections
import functools
import gc
import inspect
import pickle
import sys
import traceback
import types
import weakref
from typing import Any
from unittest import mock

import pytest
from fakes.our_code import ours
from tfprof.shim import guard
from tfprof.shim.steps import observer


class Thing:
    """A class of the job."""

    def method(self, first, second=2, *, third=3):
        """Return the arguments and the depth of the stack."""
        return first, second, third, len(inspect.stack(0))

    def captured(self, first):
        """Use the arguments in an inner scope, so that they are cell variables."""
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
def reported(armed):
    """The list of reported values."""
    return []


def test_calls_are_reported_and_attribute_accesses_are_not(reported):
    thing = Thing()
    method_before = thing.method
    observer.observe(Thing, "method", reported.append)
    method_after = thing.method
    assert reported == []
    for number in range(3):
        assert (method_before, method_after, thing.method)[number](number)[:3] == (number, 2, 3)
    assert reported == [thing] * 3


def test_code_that_somebody_keeps_refers_to_nothing_of_ours_after_a_detach(armed):
    class Callback(list[Any]):
        """A callback to which a weak reference is possible."""

        __call__ = list.append
        __name__ = "callback"

    callback = Callback()
    reference = weakref.ref(callback)
    observer.observe(Thing, "method", callback)
    kept = types.FunctionType(Thing.method.__code__, globals(), argdefs=(2,))
    kept.__kwdefaults__ = {"third": 3}
    kept(Thing(), 1)
    assert len(callback) == 1
    del callback
    armed.disarm()
    gc.collect()
    assert reference() is None
    assert kept(Thing(), 1)[:3] == (1, 2, 3)


def test_the_function_is_the_same_object_with_the_same_metadata(reported):
    method = Thing.method
    signature, source = str(inspect.signature(method)), inspect.getsource(method)
    depth = Thing().method(1)[3]
    observer.observe(Thing, "method", reported.append)
    assert Thing.method is method
    assert (str(inspect.signature(method)), inspect.getsource(method)) == (signature, source)
    assert inspect.getfullargspec(Thing.method).kwonlyargs == ["third"]
    assert pickle.loads(pickle.dumps(Thing.method)) is Thing.method
    double = mock.create_autospec(Thing, instance=True)
    with pytest.raises(TypeError):
        double.method()
    assert Thing().method(1)[3] == depth


def test_several_arguments_are_passed_including_cell_variables(reported):
    observer.observe(Thing, "captured", lambda *arguments: reported.append(arguments), 2)
    thing = Thing()
    assert thing.captured(5) == (thing, 5)
    assert reported == [(thing, 5)]


def test_a_decorated_function_is_observed(reported):
    observer.observe(Thing, "wrapper", reported.append)
    thing: Any = Thing()
    assert thing.wrapper() == 1
    assert len(reported) == 1


def test_an_exception_shows_no_frame_of_ours(reported):
    observer.observe(Thing, "failing", reported.append)
    with pytest.raises(LookupError) as caught:
        Thing().failing()
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["failing"]


def test_a_tracer_sees_the_same_lines(reported):
    def traced_lines():
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

    before = traced_lines()
    observer.observe(Thing, "captured", reported.append)
    assert traced_lines() == before
    assert len(reported) == 1


def test_a_builtin_is_wrapped_in_a_python_function(reported):
    class Counter(collections.Counter[str]):
        """A class with a builtin method."""

        get = collections.Counter.get

    observer.observe(Counter, "get", reported.append)
    counter = Counter(a=1)
    assert counter.get("a") == 1
    assert reported == [counter]
    assert Counter.get.__name__ == "get"


def test_a_generator_is_reported_when_it_is_created(reported, monkeypatch):
    this_module = sys.modules[__name__]
    monkeypatch.setattr(this_module, "generator", generator)
    observer.observe(this_module, "generator", reported.append)
    assert list(this_module.generator(1)) == [1]
    assert str(inspect.signature(this_module.generator)) == "(first)"
    assert reported == [1]


def test_everything_is_undone(reported, armed):
    codes = Thing.method.__code__, Thing.failing.__code__
    observer.observe(Thing, "method", reported.append)
    observer.observe(Thing, "method", reported.append)
    armed.disarm()
    assert (Thing.method.__code__, Thing.failing.__code__) == codes
    Thing().method(1)
    assert reported == []


def test_an_error_of_a_callback_is_contained(reported, armed, monkeypatch):
    monkeypatch.setattr(guard, "lets_errors_out", False)

    @ours
    def callback(_thing):
        raise KeyError("ours")

    observer.observe(Thing, "decorated", callback)
    assert Thing().decorated() == 1


def end_callback(reported):
    """Return a callback that reports, at the end of a call, whether it failed."""

    def callback(_thing):
        return observer.EndCallback(reported.append)

    return callback


@pytest.mark.parametrize(("name", "failed"), [("method", False), ("captured", False), ("failing", True)])
def test_the_end_is_reported_before_the_caller_continues(reported, name, failed):
    observer.observe(Thing, name, end_callback(reported), observes_end=True)
    thing = Thing()
    try:
        getattr(thing, name)(*([] if failed else [1]))
    except LookupError:
        assert reported == [True]  # even though the traceback keeps the frame
    assert reported == [failed]


def test_the_end_of_a_builtin_is_reported(reported):
    class Counter(collections.Counter[str]):
        """A class with a builtin method."""

        pop = collections.Counter.pop

    observer.observe(Counter, "pop", end_callback(reported), observes_end=True)
    counter = Counter(a=1)
    assert counter.pop("a") == 1
    with pytest.raises(KeyError):
        counter.pop("a")
    assert reported == [False, True]


def test_the_end_is_reported_although_the_job_keeps_an_exception_that_was_raised_in_the_call(reported):
    kept = []

    class Missing(dict[str, int]):
        """Its builtin method calls code that keeps an exception, which refers to the callers."""

        def __missing__(self, key):
            try:
                return {}[key]
            except KeyError as error:
                kept.append(error)
                return 1

        __getitem__ = dict.__getitem__

    observer.observe(Missing, "__getitem__", end_callback(reported), observes_end=True)
    assert Missing()["a"] == 1
    assert (reported, len(kept)) == ([False], 1)


def test_a_failing_callback_reports_no_end(reported, monkeypatch):
    monkeypatch.setattr(guard, "lets_errors_out", False)
    observer.observe(Thing, "method", ours(lambda _thing: reported.append(1 / 0)), observes_end=True)
    assert Thing().method(1)[0] == 1
    assert reported == []


def test_the_code_of_an_observed_method_can_be_pickled_by_value(armed):
    observer.observe(Thing, "method", lambda _thing: None, observes_end=True)
    (constant,) = (value for value in Thing.method.__code__.co_consts if isinstance(value, functools.partial))
    copy = pickle.loads(pickle.dumps(constant))
    assert list(copy((1,), (2,))) == [1, 2]
