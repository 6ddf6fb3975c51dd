"""The distribution tfprof_spans: what it tells a listener, and that marked code stays as it was."""

import asyncio
import dataclasses
import functools
import importlib.util
import inspect
import pickle
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "spans/tfprof_spans.py"


def _load(name):
    spec = importlib.util.spec_from_file_location(name, FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


spans = _load("tfprof_spans")


class Listener:
    """Records the begin and the end of each mark."""

    def __init__(self):
        self.events = []

    def __call__(self, category, name, number=0):
        self.events.append(("begin", category, name, number))
        listener = self

        class Handle:
            def end(self):
                listener.events.append(("end", category, name, number))

        return Handle()

    @property
    def short(self):
        return [f"{'+' if event == 'begin' else '-'}{name}" for event, _, name, _ in self.events]


@pytest.fixture
def listener(monkeypatch):
    new_listener = Listener()
    monkeypatch.setattr(spans, "_begin", new_listener)
    return new_listener


@spans.span
def decode(record, *, fast: bool = False) -> str:
    """Decode a record."""
    return f"{record}{fast}"


@spans.span("pieces")
def pieces(number):
    got = yield number
    try:
        yield got
    except KeyError:
        yield "caught"
    return "end"


@spans.part
async def fetch(number):
    await asyncio.sleep(0)
    return number


@spans.span
async def stream(number):
    for each in range(number):
        yield each


@spans.span
class Reader:
    """A class with an initializer."""

    def __init__(self, path, size=1):
        self.path, self.size = path, size

    @spans.span
    def read(self):
        return self.path

    @spans.span
    @classmethod
    def of(cls, path):
        return cls(path)

    @spans.span
    @staticmethod
    def double(number):
        return 2 * number


@spans.span
class Plain:
    """A class without one."""


@spans.span
class Pair(tuple):
    """A class whose instances are made by ``__new__``."""

    __slots__ = ()

    def __new__(cls, left, right):
        return super().__new__(cls, (left, right))

    def __getnewargs__(self):
        return tuple(self)


def test_a_mark_begins_and_ends_with_its_block(listener):
    with pytest.raises(KeyError), spans.span("outer", kind="a", skipped=None), spans.part("inner"):
        raise KeyError
    assert listener.events == [
        ("begin", "mark", "outer (kind=a)", 0),
        ("begin", "part", "inner", 0),
        ("end", "part", "inner", 0),
        ("end", "mark", "outer (kind=a)", 0),
    ]


def test_decorated_functions_stay_as_they_were(listener):
    assert decode(3, fast=True) == "3True"
    assert listener.short == ["+decode", "-decode"]
    assert (decode.__name__, decode.__doc__) == ("decode", "Decode a record.")
    assert str(inspect.signature(decode)) == "(record, *, fast: bool = False) -> str"
    assert inspect.getfullargspec(decode).kwonlyargs == ["fast"]
    for function in (decode, pieces, fetch, stream):
        assert pickle.loads(pickle.dumps(function)) is function
    assert inspect.isgeneratorfunction(pieces)
    assert inspect.iscoroutinefunction(fetch)
    assert inspect.isasyncgenfunction(stream)


def test_a_generator_is_marked_while_it_runs(listener):
    generator = pieces(1)
    assert next(generator) == 1
    listener.events.append(("begin", "", "between", 0))
    assert generator.send(5) == 5
    assert generator.throw(KeyError) == "caught"
    with pytest.raises(StopIteration) as error:
        next(generator)
    assert error.value.value == "end"
    assert listener.short == ["+pieces", "-pieces", "+between", *["+pieces", "-pieces"] * 3]
    closed = pieces(2)
    next(closed)
    closed.close()


def test_coroutines_and_asynchronous_generators(listener):
    async def use():
        return [each async for each in stream(2)], await fetch(7)

    assert asyncio.run(use()) == ([0, 1], 7)
    assert listener.short == ["+stream", "-stream"] * 3 + ["+fetch", "-fetch"]


def test_classes_and_methods_stay_as_they_were(listener):
    reader = Reader.of("a")
    assert (reader.read(), Reader.double(2), type(reader) is Reader) == ("a", 4, True)
    assert listener.short == [
        *("+Reader.of", "+Reader", "-Reader", "-Reader.of"),
        *("+Reader.read", "-Reader.read", "+Reader.double", "-Reader.double"),
    ]
    assert str(inspect.signature(Reader)) == "(path, size=1)"
    assert str(inspect.signature(Plain)) == "()"
    assert pickle.loads(pickle.dumps(reader)).path == "a"
    assert pickle.loads(pickle.dumps(Pair(1, 2))) == Pair(1, 2)

    class Derived(Plain, Reader):
        pass

    assert Derived("b").path == "b"


def test_callable_objects_keep_their_attributes(listener):
    class Function:
        answer = 42

        def __call__(self, number):
            return number

    function = spans.span("function")(Function())
    assert (function(3), listener.short) == (3, ["+function", "-function"])
    if importlib.util.find_spec("wrapt"):
        assert function.answer == 42


def test_descriptors_such_as_a_tf_function_keep_their_methods(listener):
    @spans.span
    @functools.lru_cache
    def cached(number):
        return number

    assert (cached(1), cached(1)) == (1, 1)
    if importlib.util.find_spec("wrapt"):
        assert cached.cache_info().hits == 1


def test_a_class_that_inherits_its_initializer_stays_as_it_is(listener):
    @dataclasses.dataclass
    @spans.span
    class Point:
        x: int

    @spans.span
    class Cache(dict):
        pass

    assert (Point(1).x, Cache(a=1)) == (1, {"a": 1})


def test_pairs_of_calls(listener):
    spans.activity_start("load", 1, {"size": 3})
    spans.step_start("model", 1)
    spans.activity_start("load", 2)
    spans.activity_end("load", 1)
    spans.activity_end("never begun")
    spans.finalize()
    assert listener.short == ["+load (size=3)", "+model", "+load", "-load (size=3)", "-model", "-load"]
    assert listener.events[1] == ("begin", "step", "model", 1)


def test_a_step_that_has_no_hash(listener):
    step = [1]  # as a tensor or a variable of TensorFlow 2
    spans.activity_start("load", step)
    spans.activity_end("load", [1])
    spans.activity_end("load", step)
    spans.step_start("model", step)
    spans.finalize()
    assert listener.short == ["+load", "-load", "+model", "-model"]


def test_names_of_a_subclass_of_str(listener):
    class Phase(str):
        __slots__ = ()

    with spans.span(Phase("train")), spans.part(Phase("train"), size=3):
        pass
    assert listener.short == ["+train", "+train (size=3)", "-train (size=3)", "-train"]
    assert type(listener.events[0][2]) is str


def test_trace_level_0_turns_pairs_of_calls_off(monkeypatch):
    monkeypatch.setenv("TENSORFLOW_MODELS_TRACE_LEVEL", "0")
    module = _load("tfprof_spans_off")
    monkeypatch.setattr(module, "_begin", Listener())
    module.activity_start("load")
    module.activity_end("load")
    assert module._begin.events == []


def test_profile_asks_for_traced_steps(listener):
    spans.profile(steps=10)
    with spans.profile(steps=5):
        pass
    with spans.profile():
        pass

    @spans.profile
    def train():
        return "trained"

    assert train() == "trained"
    requests = [event for event in listener.events if event[1] == "profile"]
    assert [event[3] for event in requests] == [10, 5, 0, 0, 0, 0]


def test_without_a_listener_marks_do_nothing():
    with spans.span("a"), spans.step(3):
        assert decode(1) == "1False"
    spans.activity_start("load")
    spans.step_end("model", [1])
    spans.finalize()
    assert list(pieces(1)) == [1, None]


def test_a_listener_that_comes_while_a_mark_runs_hears_only_later_ones(monkeypatch):
    outer = spans.span("outer")
    with outer:
        new_listener = Listener()
        monkeypatch.setattr(spans, "_begin", new_listener)
        with outer:
            pass
    assert new_listener.short == ["+outer", "-outer"]
    with outer:
        monkeypatch.undo()
    assert new_listener.short == ["+outer", "-outer"] * 2
