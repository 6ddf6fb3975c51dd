"""What each thread is in: open loops of Keras, a measured call, a training step."""

from __future__ import annotations

from _thread import _local
from typing import Any, Callable
from weakref import ref

from ..weak_table import WeakTable

#: The value of ``outermost_call`` while no call runs: a dead weak reference.
no_call: Callable[[], object] = ref(set())


class ThreadState(object):
    """A thread's open loops (outermost first), outermost measured call and training step."""

    was_outside = False  # the thread was seen outside of loops that began before an attach

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Be in nothing, as in a forked child: the parent counts its steps."""
        self.pending_kind = 0  # kind of the next outermost call; 0: it follows from the call
        self.loops: list[Any] = []  # fits, evaluations, predictions
        # Weak references: a call that is deleted without being left counts as ended.
        self.outermost_call: Callable[[], Any] = no_call
        self.tape_step: Any = None  # the current training step
        self.are_gradients_applied = False  # whether an optimizer applied the last gradients that a tape recorded
        self.is_applying = False  # whether an optimizer is applying gradients now
        self.activity = 0  # span key of the innermost running activity (activities.py)
        self.marks: list[Any] = []  # running marks of the job's code, and ended ones around an activity (marks.py)
        self.traced_ns = 0  # when a graph was made that the running call has yet to run
        self.collection_start = 0

    @property
    def is_in_step(self) -> bool:
        """Whether the thread is in a measured call or a loop: a call may be part of it."""
        return bool(self.loops) or self.outermost_call() is not None

    def is_in_loop(self) -> bool:
        """Return whether the calling thread is in a loop; end those that an exception has left."""
        while self.loops and self.loops[-1].end_if_left():
            pass
        return bool(self.loops)

    def leave(self, key: int, outer: int) -> None:
        """End the activity ``key`` within ``outer``; leave marks around it that have ended."""
        if self.activity == key:
            self.activity = outer
        elif key:
            for mark in self.marks:  # those that began within it outlive it
                mark.outer = outer if mark.outer == key else mark.outer
        while self.marks and not self.marks[-1].is_open and self.activity == self.marks[-1].key:
            self.activity = self.marks.pop().outer

    def end_stopped_step(self) -> None:
        """End a training step whose tape has stopped recording; the next expects no optimizer."""
        step = self.tape_step
        if step is None or not step.has_stopped():
            return
        step.end(False, step.end_ns)
        self.are_gradients_applied = False  # no optimizer ended the step

    def take_pending_kind(self, default: int) -> int:
        """Return the kind of the next call and clear it; ``default`` if none is set."""
        kind, self.pending_kind = self.pending_kind, 0
        return kind or default


_thread_states = WeakTable()  # the states of all threads that have one


class ThreadLocal(_local):
    """The calling thread's ``thread_state``."""

    thread_state = ThreadState()  # for a collection that interrupts __init__, in which nothing is noted

    def __init__(self) -> None:
        self.thread_state = ThreadState()
        _thread_states.set(self.thread_state)


local = ThreadLocal()


def is_other_thread_in_call() -> bool:
    """Return whether a thread other than the calling one is in a measured call or a loop."""
    state = local.thread_state
    return any(other is not state and other.is_in_step for other in _thread_states.existing())


def after_fork() -> None:
    """Forget all threads' steps in a forked child, where only the calling thread goes on."""
    state = local.thread_state
    for step in (state.outermost_call(), state.tape_step):
        if hasattr(step, "step"):  # an OutermostStep: its end does nothing
            step.step = None
    _thread_states.clear()
    _thread_states.set(state)
    state.forget()
