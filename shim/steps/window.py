"""Windows: recordings of single steps by a framework's profiler.

The thread of the step opens and closes its window. So nothing of ours runs between steps, and the
data of a traced step is in the ring when the job continues. A framework allows one profiler session
per process; a session that the job starts itself comes first.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from functools import partial
from typing import Any

from .. import clock, core, libc
from ..channel.ring import Channel
from ..guard import guarded
from ..pacing.tracker import Tracker
from ..process_events import at_end, in_child
from ..try_lock import Hold, TryLock
from ..weak_table import WeakTable
from .activities import announce_threads
from .thread_state import local

Step = Any  # the Step of step.py, which imports this module

DURATION_MAX_S = 5.0  # seconds: maximum duration of a window; longer steps are not recorded
_FIRST_DURATION_MAX_S = 1.0  # the same in the first try before a step has been recorded
_GROWTH_MAX_KIB = 256 << 10  # KiB by which the process may grow in a window; the step's own memory counts, too
_RETRY_GROWTH_SHIFT = 3  # after each failed window, the process may grow by a fraction of this: 1 / 2 ** 3
_TRIES = 3  # maximum consecutive failed windows: a first step may compile for long

#: The process's one window.
current: Window | None = None
_failed_windows: dict[tuple[int, int], int] = {}  # (kind, key) of steps -> consecutive windows without a whole step
#: Why a window cannot be opened while another session is active: (slug, text).
BUSY_REASON = ("profiler-busy", "another profiler session is active: steps are not traced meanwhile")
_has_recorded = False  # whether a window has recorded its step
_is_ending = False  # the process ends: no window is opened any more
_WAIT_NS = 1000000000  # maximum wait of the job for a traced run that holds the session
_PAUSE_S = 0.002  # seconds between two checks whether the run has ended
_session_lock = TryLock()  # of the profiler session
#: The claims in force. While there is one, tfprof starts no session.
claims = WeakTable()


class Claim(object):
    """Exists while the job starts a profiler session, or traces a run with one."""


class ExportError(Exception):
    """A recording cannot be exported; ``args`` are the slug and the text of the reason."""


class Window(object):
    """The recording of one step of ``tracker``, with ``ordinal`` and ``key``."""

    def __init__(self, tracker: Tracker, channel: Channel, ordinal: int, key: int, recording: Any) -> None:
        self.tries = _failed_windows.get((tracker.kind, key), 0)
        self.start_peak_kib = libc.peak_kib()
        self.growth_max_kib = _GROWTH_MAX_KIB >> _RETRY_GROWTH_SHIFT * self.tries
        self.tracker = tracker
        self.channel = channel
        self.ordinal = ordinal
        self.key = key
        self.thread_ident = get_ident()
        self.own_ns = 0  # our work for the window, ns
        self.recording = recording

    def is_of(self, step: Any) -> bool:
        """Return whether this is the window of ``step``."""
        return step is not None and self.tracker is step.tracker and self.ordinal == step.ordinal

    def close(self) -> None:
        """Stop being the current window, unless it was dropped, and release the recording."""
        global current
        if current is self:
            current = None
        self.recording.free()

    def put(self, step: Step, duration: int, count: int) -> bool | None:
        """Stop recording and put the data as the record of ``step``.

        Return False if the ring dropped and counted the record, None without data.
        """
        global _has_recorded
        recording, channel = self.recording, self.channel
        try:
            data = recording.export(channel.data_max - recording.HEAD_SIZE)
        except ExportError as error:
            self._refuse(*error.args)
            return None
        if data is None:
            if not recording.is_unwanted:
                self.report_dropped()
            return None
        _has_recorded = True
        _failed_windows.pop((self.tracker.kind, self.key), None)
        recording.send_graphs(channel)  # first: the graphs hold the placement of the ops
        times = step.start, recording.start_real_ns + step.start - recording.start_ns, duration
        data = recording.head(count) + data
        kind = self.tracker.kind
        return channel.put(recording.RECORD_KIND, data, self.ordinal, *times, channel.threads.tid, self.key, kind)

    def report_dropped(self) -> None:
        """Report why the recording was dropped: the process grew too much, or the step is long."""
        growth = libc.peak_kib() - self.start_peak_kib
        if growth > self.growth_max_kib:
            text = "the process grew by %d MiB while a step was recorded, more than %d"
            self._refuse("window-too-large", text % (growth >> 10, self.growth_max_kib >> 10))
        else:
            self._refuse("window-too-long", "the recording of a step reached the time limit before the step ended")

    def _refuse(self, slug: str, text: str) -> None:
        _failed_windows[self.tracker.kind, self.key] = self.tries + 1
        self.channel.report(slug, text, is_unique=True)


@guarded
def begin(tracker: Tracker, ordinal: int, key: int, count: int) -> tuple[bool, bool] | None:
    """Open a window for the step, which counts as ``count`` steps, if the tracker selects it.

    Return (whether the pacer gets the step's duration, whether the window is open).
    """
    window, state = current, local.thread_state
    if window is not None and state.tape_step is not None and window.is_of(state.tape_step.step):
        state.end_stopped_step()
    hold = reserve()
    try:
        window = current
        if window is not None and not _free_abandoned(window):
            tracker.count_missed(ordinal, count)
            return None
        level = tracker.level(ordinal, key, count)
        return True, level is not None and _open(tracker, ordinal, key, level, count, hold is not None)
    finally:
        del hold  # a traceback that the job keeps must not hold it


def end_step(step: Step, duration: int, count: int) -> None:
    """Record the end of the traced ``step`` after ``duration`` ns; it counts as ``count`` steps."""
    own_ns: int | None = None
    try:
        own_ns = _close(step, duration, count)
    finally:
        step.tracker.note_traced(step.key, duration, own_ns or 0)


@guarded
def _close(step: Step, duration: int, count: int) -> int:
    """Deliver the window of ``step``, or count a loss; return our work for the window, ns."""
    start, window, channel = clock.mono(), current, step.tracker.channel
    if window is None or not window.is_of(step):  # it was dropped
        if channel is not None:
            channel.put_trace(lambda: None)  # counts a lost trace
        return 0
    try:
        window.channel.put_trace(partial(window.put, step, duration, count))
    finally:
        window.close()
    announce_threads()
    return window.own_ns + clock.mono() - start


@guarded
def note_call(call: dict[str, Any]) -> None:
    """Let the open window note a call of a function, which has a ``self`` and ``args``."""
    window = current
    if window is not None and not window.recording.is_stopped:  # it may stop long before its step ends
        window.recording.note_call(call)


def claim(_session: object = None) -> Claim:
    """Drop any window, since the job is about to use the profiler session, and return a claim.

    The claim lasts as long as the returned object. A run of another thread that holds the session
    is waited for, for a second at most.
    """
    in_child(_after_fork)
    new_claim = Claim()
    try:
        claims.set(new_claim)
        drop_current()
        deadline = clock.mono() + _WAIT_NS
        while _session_lock.is_held_by_another_thread and clock.mono() < deadline:
            clock.sleep(_PAUSE_S)
        return new_claim
    finally:
        del new_claim  # a traceback that the job keeps must not keep it


def reserve() -> Hold | None:
    """Hold the profiler session and return the hold; None while it is in use or claimed."""
    in_child(_after_fork)
    hold = _session_lock.take()
    # A claim that begins after this check waits until ``hold`` is released.
    return None if claims else hold


@guarded
def drop(step: Step) -> None:
    """Drop the window of ``step``, which found no data and so was no step."""
    window = current
    if window is not None and window.is_of(step):
        try:
            window.recording.drop()
        finally:
            window.close()


@guarded
def drop_current() -> None:
    """Drop any open window: the job is about to start a profiler session."""
    global current
    window = current
    if window is None or (not window.recording.start_ns and window.thread_ident == get_ident()):
        return  # there is none, or our own session is starting
    current = None
    window.recording.drop()


def _free_abandoned(window: Window) -> bool:
    """Free ``window`` and return True if its recording has ended, though its step has not.

    The step may be long, its thread may have ended, or an exception may have kept this thread from
    closing the window.
    """
    is_own = window.thread_ident == get_ident()
    if not (window.recording.is_gone or (is_own and window.recording.is_stopped)):
        return False
    if not is_own:
        window.report_dropped()
    window.close()
    return True


def _open(tracker: Tracker, ordinal: int, key: int, level: int, count: int, is_reserved: bool) -> bool:
    """Open a window for step ``ordinal``; False when that was refused.

    ``is_reserved``: whether the profiler session is free, and held until this has returned.
    """
    global current
    channel = tracker.channel
    assert channel is not None
    start = clock.mono()
    recorder = tracker.recorder()
    reason = _obstacle(channel, tracker.kind, key) or recorder.obstacle(level) or (None if is_reserved else BUSY_REASON)
    if reason is None:
        window, is_open = Window(tracker, channel, ordinal, key, recorder.Recording()), False
        try:
            current = window
            reason = _start(window)
            is_open, window.own_ns = reason is None, clock.mono() - start
        finally:
            if not is_open:
                window.close()
        if reason is None:
            return True
    tracker.spend(clock.mono() - start)
    if reason is BUSY_REASON:
        tracker.count_missed(ordinal, count)
    if reason is not None and reason[0] and not _is_ending:
        channel.report(reason[0], reason[1], is_unique=True)
    return False


def _start(window: Window) -> tuple[str, str] | None:
    """Start the recording of ``window``; return (slug, text) of an obstacle, None without one."""
    # Checked after ``current`` is set: a later claim of the job's finds the window and drops it.
    if claims:
        return BUSY_REASON
    if _is_ending:  # `_at_exit` may have run before ``current`` was set
        return ("", "")
    seconds = DURATION_MAX_S if window.tries or _has_recorded else _FIRST_DURATION_MAX_S
    size_max_kib = window.start_peak_kib + window.growth_max_kib if window.start_peak_kib else sys.maxsize
    reason: tuple[str, str] | None = window.recording.open(seconds, size_max_kib)
    return reason


def _obstacle(channel: Channel, kind: int, key: int) -> tuple[str, str] | None:
    """Return (slug, text) of an obstacle to any window; an empty slug is not to be reported."""
    if _is_ending or _failed_windows.get((kind, key), 0) >= _TRIES:
        return ("", "")
    at_end(_at_exit)
    core.at_disarm(drop_current)
    return channel.grow()


def _at_exit() -> None:
    """Drop the windows of other threads before the interpreter ends."""
    global _is_ending
    _is_ending = True
    drop_current()


def _after_fork() -> None:
    """Forget the holder, the claims and the window of the parent in a forked child."""
    global current, _session_lock
    _session_lock = TryLock()
    claims.clear()
    window, current = current, None
    if window is not None:
        window.recording.leak()
