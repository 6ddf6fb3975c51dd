"""Calls of functions as steps, with a fake TensorFlow."""

import json
import os
import types

import pytest
from fakes import eager_tensorflow
from fakes.open_channel import open_channel
from tfprof.formats import layout
from tfprof.shim import opening as hello_page
from tfprof.shim.steps import thread_state, window
from tfprof.shim.tensorflow import function


@pytest.fixture
def functions(monkeypatch, armed):
    _, module, _ = eager_tensorflow.install(monkeypatch)
    monkeypatch.setattr(window, "current", None)
    function.patch(module)
    yield module
    window.drop_current()
    assert not thread_state.local.thread_state.is_in_step


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


def test_calls_while_a_graph_is_built_are_no_steps(functions, read):
    eager_tensorflow.enter_graph_construction()
    functions.Function("traced")()
    assert read().spans == []


def test_a_call_that_fails_is_flagged_and_its_exception_has_no_frame_of_ours(functions, read):
    error = ValueError("the user's")

    def body():
        raise error

    with pytest.raises(ValueError) as caught:
        functions.Function("failing", body)()
    assert caught.value is error
    function_names = []
    trace = error.__traceback__
    while trace is not None:
        function_names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert function_names[1:] == ["__call__", "body"]
    assert [span.flags for span in spans(read())] == [layout.FLAG_FAILED]


def test_a_window_learns_which_functions_are_called_in_it(functions, read, monkeypatch):
    added_functions: list[object] = []
    monkeypatch.setattr(window, "note_call", lambda call: added_functions.append(call["self"]))
    step = functions.Function("step")
    for _ in range(4):
        step()
    assert added_functions == [step]


def test_calls_within_a_counted_call_are_no_steps(functions, read):
    inner = functions.Function("inner")
    outer = functions.Function("outer", inner)
    for _ in range(CALL_COUNT):
        outer()
    assert read().count(layout.FUNCTION) == CALL_COUNT


def test_a_call_whose_annotation_was_never_entered_is_no_step(functions, read):
    functions.trace.Trace("dropped")
    functions.Function("step")()
    assert len(spans(read())) == 1


def test_the_annotation_looks_like_tensorflows_own(functions, armed):
    (original,) = (original for _, name, original, _ in armed.state().replaced if name == "trace")
    with functions.trace.Trace("step") as annotation:
        assert isinstance(annotation, original.Trace)
        assert type(annotation).__name__ == "Trace"
        assert type(annotation) is not original.Trace


CALL_COUNT = 2000


def test_most_short_calls_are_only_counted(functions, read):
    step = functions.Function("step")
    for _ in range(CALL_COUNT):
        step()
    reader = read()
    assert reader.count(layout.FUNCTION) == CALL_COUNT
    assert len(reader.of_kind(layout.FUNCTION)) < CALL_COUNT


def test_a_counted_call_that_fails_is_recorded_as_failed(functions, read):
    failing: list[bool] = []

    def body():
        if failing:
            raise ValueError

    step = functions.Function("step", body)
    for _ in range(CALL_COUNT):
        step()
    failing.append(True)
    for _ in range(3):
        with pytest.raises(ValueError):
            step()
    steps = read().of_kind(layout.FUNCTION)
    assert sum(span.count for span in steps if span.flags & layout.FLAG_FAILED) == 3


def test_calls_in_a_keras_call_or_a_graph_are_not_counted(functions, read):
    step = functions.Function("step")
    for _ in range(CALL_COUNT):
        step()
    before = read().count(layout.FUNCTION)
    state = thread_state.local.thread_state
    state.loops.append(types.SimpleNamespace(end_if_left=lambda: False))
    step()
    state.loops.clear()
    eager_tensorflow.enter_graph_construction()
    step()
    assert read().count(layout.FUNCTION) == before


def test_versions_without_the_annotation_are_not_patched(armed):
    old_module = eager_tensorflow.module("tensorflow.python.eager.def_function")
    function.patch(old_module)
    assert not hasattr(old_module, "trace")


def hello(read):
    return json.loads(bytes(read().map[layout.HELLO_AT :][: read().word("hello_size")]))


def test_the_hello_has_the_name_of_each_key_once(functions, read, monkeypatch):
    for name in ("one", "two", "one"):
        functions.Function(name)()
    keys = [span.key for span in spans(read())]
    assert hello(read)["functions"] == {str(keys[0]): "one", str(keys[1]): "two"}
    generation = read().word("hello_generation")
    functions.Function("two")()
    assert read().word("hello_generation") == generation
    assert read().word("faults") == 0


def test_names_of_functions_are_bounded_in_length_and_number_and_by_the_page(functions, read):
    for number in range(100):
        functions.Function(f"{number:03d}\u00e9" + "x" * 100)()
    published = list(hello(read)["functions"].values())
    assert 20 < len(published) <= hello_page.NAMES_MAX
    assert {len(name) for name in published} == {hello_page.LENGTH_MAX}
    assert [name[:3] for name in published] == [f"{number:03d}" for number in range(len(published))]
    assert read().word("hello_size") <= layout.HELLO_MAX
    assert read().word("faults") == 0


def test_a_name_is_published_later_while_another_thread_publishes(functions, read, armed):
    hold = open_channel().hello.lock.take()
    functions.Function("one")()
    del hold
    assert "functions" not in hello(read)
    functions.Function("one")()
    assert list(hello(read)["functions"].values()) == ["one"]


def test_a_tracker_that_starts_again_as_in_a_forked_child_has_published_no_names(functions, read, armed):
    functions.Function("one")()
    tracker = armed.tracker(layout.FUNCTION)
    assert tracker.published_keys
    tracker.forget()
    assert not tracker.published_keys


def test_a_call_in_which_a_child_is_forked_is_counted_by_the_parent_alone(functions, armed):
    count_at = layout.COUNTS_AT // 8 + layout.FUNCTION
    read_fd, write_fd = os.pipe()
    children = []
    inner = functions.Function("inner")
    outer = functions.Function("outer", lambda: children.append(os.fork()))
    for _ in range(5):
        inner()
    outer()
    if children == [0]:
        inner()
        os.write(write_fd, b"%d" % open_channel().words[count_at])
        os._exit(0)
    os.wait()
    assert os.read(read_fd, 100) == b"1"
    assert open_channel().words[count_at] == 6
    os.close(read_fd)
    os.close(write_fd)
