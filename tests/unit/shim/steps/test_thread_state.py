"""The states of threads: loops and calls of other threads."""

import threading
from typing import Any

import pytest
from tfprof.shim.steps import thread_state


def test_loops_of_other_threads_are_found() -> None:
    states: list[thread_state.ThreadState] = []
    has_state, may_end = threading.Event(), threading.Event()

    def run() -> None:
        states.append(thread_state.local.thread_state)
        has_state.set()
        may_end.wait(10)

    call: Any = object()
    own_calls = thread_state.local.thread_state.loops
    own_calls.append(call)
    other = threading.Thread(target=run)
    other.start()
    has_state.wait(10)
    assert not thread_state.is_other_thread_in_call()
    states[0].loops.append(call)
    assert thread_state.is_other_thread_in_call()
    del states[:]
    may_end.set()
    other.join()
    assert not thread_state.is_other_thread_in_call()
    own_calls.remove(call)


def test_a_collection_may_interrupt_the_creation_of_a_threads_state(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[thread_state.ThreadState] = []

    class Interrupted(thread_state.ThreadState):
        def __init__(self) -> None:
            found.append(thread_state.local.thread_state)
            super().__init__()

    original = thread_state.ThreadState
    monkeypatch.setattr(thread_state, "ThreadState", Interrupted)
    thread = threading.Thread(target=lambda: found.append(thread_state.local.thread_state))
    thread.start()
    thread.join()
    assert [type(state) for state in found] == [original, Interrupted]
