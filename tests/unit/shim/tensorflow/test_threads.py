"""Threads as lines of an XSpace."""

import threading
from typing import Any

import pytest
from tfprof.formats import layout
from tfprof.shim.tensorflow import function, threads


@pytest.mark.parametrize(
    ("ident", "line_id"),
    [
        (140367364565888, 728776921845672089),  # TensorFlow 2.21
        (140187651414912, 3361262381),  # 2.10
        (140471824866176, 918910930),  # 2.4
    ],
)
def test_a_thread_has_the_line_id_that_tensorflow_gives_it(ident: int, line_id: int) -> None:
    assert threads.line_id(ident) == line_id & 0xFFFFFFFF
    assert threads.head_word(ident) == line_id & 0xFFFFFFFF & ~layout.XSPACE_OTHER_THREADS


def test_other_threads_in_calls_set_the_lowest_bit() -> None:
    states: list[function.ThreadState] = []
    has_state, may_end = threading.Event(), threading.Event()

    def run() -> None:
        states.append(function.local.thread_state)
        has_state.set()
        may_end.wait(10)

    call: Any = object()
    own_calls = function.local.thread_state.keras_calls
    own_calls.append(call)
    other = threading.Thread(target=run)
    other.start()
    has_state.wait(10)
    assert not threads.head_word(1) & layout.XSPACE_OTHER_THREADS
    states[0].keras_calls.append(call)
    assert threads.head_word(1) & layout.XSPACE_OTHER_THREADS
    del states[:]
    may_end.set()
    other.join()
    assert not threads.head_word(1) & layout.XSPACE_OTHER_THREADS
    own_calls.remove(call)
