"""Separates the ops of a step from those of function calls on other threads.

A profiler session records all threads, but a step belongs to one thread. A line, or XLine, holds
the events of one thread.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ...formats import layout
from .proto.xplane_pb2 import XLine

#: Events: a thread calls a function; an executor runs ops on a thread; tf.data calls a function.
FUNCTION_RUN: Final = b"FunctionRun"
PROCESS: Final = b"ExecutorState::Process"
_DATA_FUNCTION_RUN: Final = b"InstantiatedCapturedFunction::Run"
#: Event: a pool thread starts work; older versions of TensorFlow do not record it.
_REGION_START: Final = b"ThreadpoolListener::StartRegion"
#: Event: an executor has run an op on the event's thread. The event has the id of the executor's
#: call.
PROPAGATE: Final = b"ExecutorPropagateOutputs"
EVENTS: Final = frozenset({FUNCTION_RUN, PROCESS, _REGION_START, _DATA_FUNCTION_RUN, _DATA_FUNCTION_RUN + b"Async"})
#: Call id of an op with an unknown call: its executor began before the session, or was still
#: running at the session's end.
UNSEEN: Final = -1
#: Name prefix of TensorFlow's pool threads. Ops call functions on these threads.
_POOL_PREFIX: Final = b"tf_"
#: Name prefixes of the threads that run functions of tf.data.
_DATA_PREFIXES: Final = (b"tf_data_private_threadpool", b"tf_data_iterator_resource")
#: Mask for a caller (thread_lines.py) and for a line's id. Equal results mean the same line.
_LINE_MASK: Final = 0xFFFFFFFF & ~layout.XSPACE_OTHER_THREADS


def in_pool(line: XLine) -> bool:
    """Whether a line belongs to one of TensorFlow's pool threads."""
    return line.name.startswith(_POOL_PREFIX)


def is_of_pipeline(line: XLine) -> bool:
    """Whether a line belongs to a thread on which tf.data calls functions."""
    return line.name.startswith(_DATA_PREFIXES)


def call_id(stats: Mapping[bytes, bytes | int]) -> int:
    """Return the call id in the stats of an event, 0 if there is none."""
    value = stats.get(b"id", 0)
    return value & 0xFFFFFFFFFFFFFFFF if isinstance(value, int) else 0


class _FunctionRun(NamedTuple):
    """A call of a function; its caller is the step's thread, a pool thread, or another thread.

    ``enclosing``: the call around it, 0 if there is none, UNSEEN if it is unknown.
    """

    is_own: bool
    in_pool: bool
    enclosing: int


class Calls:
    """The function calls in a session.

    ``caller`` identifies the step's thread (thread_lines.py). A call without a start event was
    in progress when the session began. It belongs to another thread if other threads call functions
    and no event of tf.data has its id.
    """

    def __init__(self, caller: int) -> None:
        self._own_line = caller & _LINE_MASK
        self._knows_line = False  # whether the session has the line of the step's thread
        # Whether threads that are neither the step's nor pool threads called functions.
        self._have_others_called = bool(caller & layout.XSPACE_OTHER_THREADS)
        self._has_regions = False
        self._first_call_ps: int | None = None  # when the step's thread first called a function
        self._function_runs: dict[int, _FunctionRun] = {}
        self._data_calls: set[int] = set()

    def add_event(self, name: bytes, call: int, line: XLine, start_ps: int, enclosing: int) -> None:
        """Add the event ``name`` of ``call`` on the thread ``line``.

        ``enclosing``: the call around the event, 0 if there is none, UNSEEN if it is unknown.
        """
        if name == _REGION_START:
            self._has_regions = True
        elif name != FUNCTION_RUN:
            self._data_calls.add(call)
        else:
            is_own, is_pooled = self._is_own(line.id), in_pool(line)
            self._function_runs[call] = _FunctionRun(is_own, is_pooled, enclosing)
            self._have_others_called = self._have_others_called or not (is_own or is_pooled)
            if is_own:
                self._first_call_ps = min(start_ps, start_ps if self._first_call_ps is None else self._first_call_ps)

    def add_line(self, line_id: int) -> None:
        """Register a line of the session."""
        self._knows_line = self._knows_line or self._is_own(line_id)

    @property
    def has_other_callers(self) -> bool:
        """Whether threads other than the step's called functions.

        The result is valid after all events were added. Pool threads do not count. The result is
        false if the step's thread is unknown or has no line in the session.
        """
        return bool(self._own_line and self._knows_line and self._have_others_called)

    def is_in_pipeline(self, call: int, *, on_data_thread: bool) -> bool:
        """Whether tf.data made ``call``, or a call around it.

        The result is valid after all events were added. A call that began before the session is one
        of tf.data if its op runs on a thread of tf.data (``on_data_thread``).
        """
        seen: set[int] = set()
        while call and call not in seen:
            seen.add(call)
            run = self._function_runs.get(call)
            if call in self._data_calls or run is None:
                return on_data_thread or call in self._data_calls
            call = run.enclosing
        return False

    def belongs_to_other_thread(self, call: int, start_ns: int) -> bool:
        """Whether an op with this call and start belongs to another thread.

        The result is valid after all events were added. An op of an unseen executor belongs to
        another thread. In older versions of TensorFlow, whose pool threads record no start of work,
        this holds only if the op began before the first call of the step's thread.
        """
        if not self.has_other_callers:
            return False
        if call == UNSEEN:
            return self._has_regions or (self._first_call_ps is not None and start_ns * 1000 < self._first_call_ps)
        seen: set[int] = set()
        while call and call not in seen:
            seen.add(call)
            run = self._function_runs.get(call)
            if run is None:
                return call not in self._data_calls
            if run.is_own or not run.in_pool:
                return not run.is_own
            call = run.enclosing
        return False

    def _is_own(self, line_id: int) -> bool:
        return line_id & _LINE_MASK == self._own_line
