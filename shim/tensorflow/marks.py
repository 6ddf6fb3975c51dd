"""Marks: activities that the job's code marks; they may end before those within them."""

from __future__ import annotations

import sys
import types
from contextvars import ContextVar
from typing import Any

from ...formats import layout
from ...formats.activities import MARK, PART, SHIFT, TRACING
from ...formats.layout import WORD
from ...formats.policy import NEVER
from .. import core
from ..channel.spans import SHORT
from ..clock import mono
from ..guard import contain
from ..steps import activities, observer
from ..steps.thread_state import local
from ..weak_table import WeakTable

#: End of a module's name, class or "", what begins a mark, number of its arguments, what ends it.
_PAIRS = (
    (".nvtx", "annotate", "__enter__", 1, "__exit__"),
    (".nvtx", "", "push_range", 1, "pop_range"),
    (".sdk.trace", "Span", "start", 1, "end"),
    (".profiler.experimental", "Trace", "__init__", 2, "__exit__"),
)
_POLICY = WORD["policy"]
_open = WeakTable()  # running marks by the object that ends them, or by the state of their thread
#: Running marks of an asyncio task, since those of several tasks of a thread are not nested.
_of_task: ContextVar[Any] = ContextVar("_of_task", default=())


class Mark(object):
    """A running mark of the calling thread or task."""

    __slots__ = ("is_open", "key", "outer", "start", "state")  # `begin_mark` sets them

    def end(self: Any) -> None:
        """End the mark; idempotent."""
        try:
            duration, recorder, state = mono() - self.start, activities.current, self.state
            if self.is_open and recorder is not None:
                self.is_open, marks = False, state.marks
                if marks and marks[-1] is self and state.activity == self.key:  # the usual case takes no call
                    state.activity = marks.pop().outer
                if marks:
                    state.leave(0, 0)
                recorder.add(local.thread_state, self.key, self.outer, self.start, duration, SHORT)
        except Exception as error:
            if not contain(error):
                raise


class Request(object):
    """An order of the job to itself: trace each step, or the next ones. Other orders come first."""

    def __init__(self, words: Any, steps: int) -> None:
        self.words, self.number = words, words[_POLICY] if words[_POLICY] <= words[WORD["order_over"]] else -1
        self._write(mode=layout.MODE_ALL, count=steps, end_ns=NEVER, order=0)

    def end(self) -> None:
        """End the order, unless another one has replaced it."""
        self._write(mode=layout.MODE_OFF, count=0, end_ns=mono(), order=0)

    def _write(self, **values: int) -> None:
        if self.words[_POLICY] == self.number:  # as the agent does
            for name, value in values.items():
                self.words[WORD["policy_" + name]] = value
            self.words[_POLICY] = self.number = self.number + 1


def begin_mark(category: str, name: str, number: int) -> Any:
    """Return a new `Mark` or `Request`; None without a channel or while a function is traced."""
    try:
        recorder, state = activities.current or activities.get_recorder(), local.thread_state
        if recorder is not None and state.activity >> SHIFT != TRACING:
            if category == "profile":
                return Request(recorder.tracker.words, number)
            about = PART if category == "part" else MARK, name
            mark: Any = Mark()
            key = activities.keys.get(about, 0)
            mark.key = key = key if key in recorder.published_keys else activities.get_key(*about)
            mark.state, mark.outer, mark.is_open = state, state.activity, True
            running_loop = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
            if running_loop is None or running_loop() is None:
                state.marks.append(mark)
                del state.marks[:-64]  # those of other threads may end in any order
                state.activity = key
            else:
                marks = [mark for mark in _of_task.get() if mark.is_open]
                mark.outer = marks[-1].key if marks else state.activity
                _of_task.set([*marks, mark])
            mark.start = mono()
            return mark
    except Exception as error:
        if not contain(error):
            raise
    return None


def patch(module: types.ModuleType) -> None:
    """Listen to the marks that ``module`` provides."""
    core.replace(module, "_begin", lambda _: begin_mark)  # of tfprof_spans
    core.replace(module, "Trace", _subclass)
    for name, owner_name, start, count, end in _PAIRS:
        if module.__name__.endswith(name):
            owner = vars(module).get(owner_name, module)
            observer.observe(owner, start, _push, count)
            observer.observe(owner, end, _pop, 0 if owner is module else 1)
    observer.observe(vars(module).get("annotate"), "__call__", _decorates, 2)


def _push(first: Any, name: str = "") -> None:
    """Begin a mark called ``name``; ``first`` is its name, or the object that ends it."""
    place = local.thread_state if issubclass(type(first), (str, int, type(None))) else first
    name = name or getattr(first, "_name", None) or getattr(first, "init_args", (first,))[0]
    mark = begin_mark("mark", str(name), 0) if getattr(core.state(), "channel", None) is not None else None
    if mark is not None:
        _open.set(place, [*(_open.get(place) or ()), mark])


def _pop(first: object = None) -> None:
    """End the last mark that ``first`` or the calling thread has begun."""
    marks = _open.get(local.thread_state if first is None else first)
    if marks:
        marks.pop().end()


def _decorates(annotation: Any, function: Any) -> None:
    """Let each call of the ``function`` that nvtx decorates be an activity."""
    owner = types.SimpleNamespace(function=function)
    name = annotation.init_args[0] or getattr(function, "__name__", "")
    observer.observe(owner, "function", lambda: activities.begin(MARK, name), 0, observes_end=True)


def _subclass(trace: Any) -> Any:
    """Return a subclass of ``trace``, which TensorFlow itself uses, with functions of its own."""
    own = {f.__name__: types.FunctionType(f.__code__, f.__globals__) for f in (trace.__init__, trace.__exit__)}
    return type("Trace", (trace,), dict(own, __doc__=trace.__doc__, __module__=trace.__module__))
