"""Calls of functions as steps, with a TensorFlow made by hand."""

import sys

import pytest
from fakes import eager_tensorflow
from tfprof.shim import function, layout, window


@pytest.fixture
def functions(monkeypatch, armed):
    _, module, _ = eager_tensorflow.install(monkeypatch)
    monkeypatch.setattr(window, "current", None)
    function.patch(module)
    yield module
    window.give_way()
    assert function.scope.depth == 0


def spans(reader):
    return [span for span in reader.of_kind(layout.FUNCTION) for _ in range(span.count)]


def test_only_the_outermost_call_is_a_step(functions, read):
    inner = functions.Function("inner")
    outer = functions.Function("outer", lambda: (inner(), inner()))
    outer()
    assert len(spans(read())) == 1


def test_functions_of_different_names_have_different_keys(functions, read):
    for name in ("one", "two", "one"):
        functions.Function(name)()
    keys = [span.key for span in spans(read())]
    assert keys[0] == keys[2] != keys[1]


def test_calls_while_a_graph_is_made_are_none(functions, read):
    vars(sys.modules["tensorflow.python.eager.context"])["eager"] = False
    functions.Function("traced")()
    assert read().spans == []


def test_a_call_that_fails_is_flagged_and_its_exception_carries_no_frame_of_ours(functions, read):
    error = ValueError("the user's")

    def body():
        raise error

    with pytest.raises(ValueError) as caught:
        functions.Function("failing", body)()
    assert caught.value is error
    names = []
    trace = error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert names[1:] == ["__call__", "body"]
    assert [span.flags for span in spans(read())] == [layout.FLAG_FAILED]


def test_the_function_called_in_a_window_is_known_by_its_end(functions, read, monkeypatch):
    called: list[object] = []
    monkeypatch.setattr(window, "called", called.append)
    step = functions.Function("step")
    for _ in range(4):
        step()
    assert called == [step, step]


def test_the_annotation_is_tensorflows_own_but_for_us(functions, armed):
    ours = functions.trace.Trace
    armed.disarm()
    assert issubclass(ours, functions.trace.Trace)
    assert ours.__name__ == "Trace"
    assert functions.trace.Trace is not ours


def test_versions_without_the_annotation_are_left_alone(armed):
    bare = eager_tensorflow.module("tensorflow.python.eager.def_function")
    function.patch(bare)
    assert not hasattr(bare, "trace")
