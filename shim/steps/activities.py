"""Activities: what the job's Python does beside the ops (formats/activities.py), as spans.

Short activities of one name are added up until they take a millisecond together, so that their
number does not matter. Activities of a thread are nested: each knows the one that encloses it.
"""

from __future__ import annotations

import gc
import sys
from _thread import get_ident
from typing import Any

from ...formats import activities, layout
from ...formats.layout import WORD
from .. import core
from ..channel.spans import SHORT
from ..clock import identity, mono
from ..guard import called_back, guarded, is_of_job_file
from ..own_os import OUR_FILE_PREFIXES
from ..process_events import at_end, in_child
from .thread_state import ThreadState, local

TYPE_CHECKING = False  # marks load this module in processes that need no channel yet
if TYPE_CHECKING:
    from ..pacing.tracker import Tracker

_COST_NS = 1500  # approximate cost of an activity
_SUMS_MAX = 256  # maximum number of sums
#: Shorter activities of a category are not recorded (ns): most methods of a callback do nothing.
_MIN_NS = {activities.CALLBACK: 2000}
#: Categories that get half of the names.
_WITH_MANY_NAMES = (activities.TRACING, activities.FIRST_RUN, activities.THREAD, *activities.MARKS)
_UNREAD_MAX = layout.SPAN_COUNT // 2  # entries of the span ring; above that (marks: half of it), they are added up
keys: dict[tuple[int, str], int] = {}  # span keys by category and name


class Recorder(object):
    """What puts the activities of this process into the channel of ``tracker``."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.published_keys = tracker.published_keys
        self._put = tracker.put  # also when the tracker has stopped
        #: Sums: (key, flags, parent, id of the state) -> [start of the first, total (ns), count].
        self._sums: dict[tuple[int, int, int, int], list[int]] = {}

    def add(self, state: ThreadState, key: int, outer: int, start: int, duration: int, put_ns: int) -> None:
        """Put an activity of the calling thread from ``put_ns`` on; add shorter ones to a sum."""
        in_step = state.outermost_call() is not None or (state.loops and state.loops[-1].batch is not None)
        about = key, layout.FLAG_IN_STEP if in_step else 0, outer, identity(state)
        if duration >= put_ns and self._has_room(key):
            self._put_row(about, [start, duration, 1])
            return
        row = self._sums.get(about)
        if row is None:
            if len(self._sums) >= _SUMS_MAX:
                self.flush()
            row = self._sums[about] = [start, 0, 0]
        row[1] += duration
        row[2] += 1
        if row[1] >= put_ns and self._has_room(key):
            self._put_row(about, self._sums.pop(about, None))

    def _has_room(self, key: int) -> bool:
        unread_max = _UNREAD_MAX // (2 if activities.number_of(key) in activities.MARKS else 1)
        return bool(self.tracker.words[WORD["span_head"]] - self.tracker.words[WORD["span_tail"]] < unread_max)

    def flush(self) -> None:
        """Put all sums."""
        for about in list(self._sums):
            self._put_row(about, self._sums.pop(about, None))

    def _put_row(self, about: tuple[int, int, int, int], row: list[int] | None) -> None:
        if row is None:  # another thread has put it
            return
        key, flags, outer, _ = about
        ordinal = self.tracker.words[layout.COUNTS_AT // 8 + self.tracker.kind] + 1
        self._put(layout.ACTIVITY, row[0], row[1], ordinal, key, flags, outer, row[2])
        self.tracker.spend(_COST_NS * row[2])


current: Recorder | None = None


class Activity(object):
    """A running activity of the calling thread; it ends when this object is deleted."""

    __slots__ = ("_category", "_key", "_outer", "_start", "_state")

    def __init__(self, state: ThreadState, category: int, key: int) -> None:
        self._state = state
        self._category = category
        self._key = key
        self._outer, state.activity = state.activity, key
        self._start = mono()

    @called_back
    def __del__(self) -> None:
        end, state = mono(), self._state
        state.leave(self._key, self._outer)
        duration = end - self._start
        if self._category == activities.TRACING:
            state.traced_ns = end
        if current is not None and duration >= _MIN_NS.get(self._category, 0):
            current.add(state, self._key, self._outer, self._start, duration, SHORT)


def begin(category: int, name: str) -> Activity | None:
    """Begin an activity; None within one of the same name, or while a function is traced."""
    state: ThreadState = local.thread_state
    key = 0 if activities.number_of(state.activity) == activities.TRACING else get_key(category, name)
    return None if not key or state.activity == key else Activity(state, category, key)


@guarded
def put_first_run(state: ThreadState, name: object) -> None:
    """Put the rest of the call of a function after its graph was made; the call ends now."""
    start, state.traced_ns = state.traced_ns, 0
    put_ended(activities.FIRST_RUN, str(name), start, mono())


def put_ended(category: int, name: str, start: int, end: int) -> None:
    """Put an activity of the calling thread that has ended, unless a function is traced."""
    state, key = local.thread_state, get_key(category, name)
    if key and current is not None and activities.number_of(state.activity) != activities.TRACING:
        current.add(state, key, state.activity, start, end - start, SHORT)


def get_key(category: int, name: str) -> int:
    """Return the span key of activities called ``name``, 0 without a channel."""
    key = keys.get((category, name))
    if key is None:
        if category in activities.MARKS and len(keys) >= activities.NAMES_MAX // 4:
            name = "".join("N" if char.isdigit() else char for char in name.partition(" (")[0])
        if len(keys) >= activities.NAMES_MAX // (2 if category in _WITH_MANY_NAMES else 1):
            name = activities.OTHERS if (category, name) not in keys else name
        key = keys[category, name] = activities.key_of(category, name)
    recorder = current or get_recorder()
    if recorder is None:
        return 0
    if key not in recorder.published_keys:
        recorder.tracker.announce_name(key, name)
    return key


def get_recorder() -> Recorder | None:
    """Return what records activities in the process's channel; None if there is none."""
    global current
    if current is not None or core.state() is None:
        return current
    tracker = core.tracker(layout.ACTIVITY, False)
    tracker.open()
    if tracker.channel is None:
        return None
    core.at_disarm(_flush)
    core.at_disarm(_forget)
    at_end(_flush)
    in_child(_forget)
    current = current or Recorder(tracker)  # another thread may have been faster
    return current


def _flush() -> None:
    if current is not None:
        current.flush()


def _forget() -> None:
    """Record no more activities in this channel; a forked child has none of the parent's."""
    global current
    current = None


def place_of(code: Any, line: int, name: object = "") -> str:
    """Return the name of a function, else that of ``code``, with a line: `load (train.py:12)`."""
    return "%s (%s:%d)" % (name or code.co_name, code.co_filename.rpartition("/")[2], line)


@guarded
def announce_threads() -> None:
    """Announce the job's other threads: number (0 before Python 3.8), outermost function, name."""
    threads = getattr(sys.modules.get("threading"), "_active", {})
    frames = sys._current_frames()
    frames.pop(get_ident(), None)
    # Our own frame may be among them, as with greenlets. If one of its variables kept it, it would
    # keep all frames of the job.
    while frames:
        ident, frame = frames.popitem()
        code = None
        while frame.f_back is not None:
            code = frame.f_code if is_of_job_file(frame) else code
            frame = frame.f_back
        if code is not None and frame.f_code.co_name == "_bootstrap" and ident in threads:
            number, name = (vars(threads[ident]).get(key, 0) for key in ("_native_id", "_name"))
            get_key(activities.THREAD, "%d %s %s" % (number, place_of(code, code.co_firstlineno), name))


# -- garbage collections -------------------------------------------------------------------------


def observe_collections() -> None:
    """Observe garbage collections until ``disarm``; idempotent."""
    if not any(callback is _collected for callback in gc.callbacks):
        gc.callbacks.append(_collected)
        core.at_disarm(lambda: gc.callbacks.remove(_collected))


@called_back
def _collected(phase: str, about: dict[str, Any]) -> None:
    """Note the start or the end of a collection, which may interrupt our own code."""
    state: ThreadState = local.thread_state
    if phase == "start":
        state.collection_start = mono()
        return
    start, state.collection_start = state.collection_start, 0
    key = get_key(activities.GC, "generation %d" % about["generation"]) if start else 0
    if key and current is not None:
        interrupted = sys._getframe(1).f_back  # None in a thread that runs no Python code
        is_in_ours = interrupted is not None and interrupted.f_code.co_filename.startswith(OUR_FILE_PREFIXES)
        current.add(state, key, state.activity, start, mono() - start, sys.maxsize if is_in_ours else SHORT)
