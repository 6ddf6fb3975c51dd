"""Threads as lines of an XSpace."""

import threading
import types
from typing import Any

import pytest
from tfprof.formats import layout
from tfprof.shim.tensorflow import function, threads


@pytest.mark.parametrize(
    ("ident", "line"),
    [
        (140367364565888, 728776921845672089),  # TensorFlow 2.21
        (140187651414912, 3361262381),  # 2.10
        (140471824866176, 918910930),  # 2.4
    ],
)
def test_a_thread_has_the_line_id_that_tensorflow_gives_it(ident: int, line: int) -> None:
    assert threads.line_id(ident) == line & 0xFFFFFFFF
    assert threads.head_word(ident) == line & 0xFFFFFFFF & ~layout.XSPACE_OTHERS


def test_other_threads_in_calls_set_the_lowest_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    here, other = function.scope.thread_state, function.ThreadState()
    monkeypatch.setattr(function, "inside", {here, other})
    assert not threads.head_word(1) & layout.XSPACE_OTHERS
    call: Any = object()
    other.keras_calls.append(call)
    assert threads.head_word(1) & layout.XSPACE_OTHERS


def test_another_thread_in_a_call_that_is_only_counted_sets_the_lowest_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    annotations = types.ModuleType("trace")
    monkeypatch.setattr(function, "annotating", {id(annotations)})
    began, ends = threading.Event(), threading.Event()

    def run() -> None:
        began.set()
        assert ends.wait(60.0)

    place: dict[str, Any] = {"trace": annotations, "run": run}
    exec("def call():\n    trace.Trace if False else run()\n", place)
    threads_to_check = [threading.Thread(target=target) for target in (run, place["call"])]
    found = []
    for thread in threads_to_check:
        began.clear()
        ends.clear()
        thread.start()
        assert began.wait(60.0)
        found.append(bool(threads.head_word(threading.get_ident()) & layout.XSPACE_OTHERS))
        assert thread.ident is not None
        assert not threads.head_word(thread.ident) & layout.XSPACE_OTHERS
        ends.set()
        thread.join()
    assert found == [False, True]
