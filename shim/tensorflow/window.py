"""Windows: recordings of single steps by TensorFlow's profiler, for steps without session runs.

The thread of the step opens and closes its window. So nothing of ours runs between steps, and the
data of a traced step is in the ring when the job continues.
"""

from __future__ import annotations

import _thread
import importlib
import sys
import weakref

from ...formats import layout
from .. import clock, core, guard
from ..channel.ring import ChannelError
from ..guard import guarded
from ..pacing import page_faults
from ..process_events import at_end, in_child
from ..try_lock import TryLock
from . import call_observer, graph, models, profiler, profiler_lock, threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..channel.ring import Channel
    from ..pacing.tracker import Tracker
    from .step import Step

DURATION_MAX_S = 5.0  # seconds: maximum duration of a window; longer steps are not recorded
_FIRST_DURATION_MAX_S = 1.0  # the same while it is unknown how fast the data grows
_RETRY_GROWTH_MAX_KIB = 32 << 10  # KiB by which the process may grow in a window after a failed one
_GROWTH_MAX_KIB = 256 << 10  # the same in other windows; memory that the step itself allocates counts, too
_DURATION_LIMIT_MIN_S = 0.25  # minimum of the limit, however fast the window's data grows
_RATE_MIN_BYTES = 1 << 16  # minimum bytes for a measurement of the growth: each session has a constant part
_TRIES = 3  # maximum consecutive failed windows: a first step may compile for long

#: The process's one window.
current: Window | None = None
_open_lock = TryLock()
#: Windows dropped before their steps ended, by (kind, ordinal); the step's end counts the loss.
_dropped_windows: dict[tuple[int, int], Window] = {}
_reported_slugs: set[str] = set()  # slugs of the refusals put so far; each is put once
_failed_windows: dict[tuple[int, int], int] = {}  # (kind, key) of steps -> consecutive windows without a whole step
_max_growth = 0.0  # highest bytes per second of any window
_is_server_started = False  # the job's profiler server may start a session at any time
_is_ending = False  # the process ends: no window is opened any more


class Window(object):
    """The recording of one step of ``tracker``, with ``ordinal`` and ``key``."""

    __slots__ = (
        "channel",
        "functions",
        "growth_max_kib",
        "head_word",
        "is_closed",
        "key",
        "ordinal",
        "own_ns",
        "pid",
        "session",
        "start_peak_kib",
        "thread_ident",
        "tracker",
    )

    def __init__(self, tracker: Tracker, channel: Channel, ordinal: int, key: int) -> None:
        self.start_peak_kib = page_faults.peak_kib()
        self.growth_max_kib = _RETRY_GROWTH_MAX_KIB if _failed_windows.get((tracker.kind, key)) else _GROWTH_MAX_KIB
        self.tracker = tracker
        self.channel = channel
        self.ordinal = ordinal
        self.key = key
        self.pid = clock.getpid()
        self.thread_ident = _thread.get_ident()
        self.head_word = threads.head_word(self.thread_ident)
        #: by id, the functions called so far, and their models
        self.functions: dict[int, tuple[weakref.ref[Any], list[weakref.ref[Any]]]] = {}
        self.own_ns = 0  # our work for the window, ns
        self.is_closed = False  # whether the step has ended, or was not traced
        self.session = profiler.StepSession()

    def is_of(self, step: Step) -> bool:
        """Return whether this is the window of ``step``."""
        return self.tracker is step.tracker and self.ordinal == step.ordinal

    @property
    def step_id(self) -> tuple[int, int]:
        """The step's (kind, ordinal)."""
        return self.tracker.kind, self.ordinal

    def close(self) -> None:
        """Stop being the current window, and release the session."""
        self.is_closed = True
        _dropped_windows.pop(self.step_id, None)
        self.forget()
        self.session.free()

    def forget(self) -> None:
        """Stop being the current window; do nothing if another one is current."""
        global current
        if current is self:
            current = None

    def deliver(self, step: Step, duration: int, count: int) -> None:
        """Stop recording and put the data as the record of ``step``; count a loss on failure."""
        start = clock.mono()
        was_put: bool | None = None
        try:
            was_put = self._put(step, duration, count)
        finally:
            if not was_put:
                self.channel.count_lost_trace(record_counted=was_put is not None)
            self.own_ns += clock.mono() - start

    def _put(self, step: Step, duration: int, count: int) -> bool | None:
        """Put the data; return False if the ring dropped and counted it, None without data."""
        session, channel, kind = self.session, self.channel, self.tracker.kind
        data_max = channel.data_max - layout.XSPACE_HEAD.size
        try:
            data = session.export(data_max)
        except profiler.TooLargeError as error:
            self._note_growth(error.args[0])
            text = "the record of a step takes %d bytes, and the ring has room for %d" % (error.args[0], data_max)
            self._refuse("window-too-large", text)
            return None
        if data is None:
            if not session.is_unwanted:
                self._report_dropped(page_faults.peak_kib() - self.start_peak_kib)
            return None
        _failed_windows.pop((kind, self.key), None)
        self._note_growth(len(data))
        self.send_graphs()  # first: the graphs hold the placement of the ops
        return channel.put(
            layout.XSPACE,
            layout.XSPACE_HEAD.pack(session.start_real_ns, count, self.head_word) + data,
            self.ordinal,
            step.start,
            session.start_real_ns + step.start - session.start_ns,
            duration,
            core.thread_id(),
            self.key,
            kind,
        )

    def _note_growth(self, size: int) -> None:
        """Update the highest growth of any window: this one recorded ``size`` bytes."""
        global _max_growth
        duration = self.session.end_ns - self.session.start_ns
        if size >= _RATE_MIN_BYTES or duration > _FIRST_DURATION_MAX_S * 5e8:
            _max_growth = max(_max_growth, size * 1e9 / max(duration, 1))

    @guarded
    def send_graphs(self) -> None:
        """Send the graphs of the functions that were called."""
        for reference, model_refs in list(self.functions.values()):
            function = reference()
            for concrete in concrete_functions(function):
                graph.ensure_functions_sent(concrete.graph, self.channel, (function, model_refs))

    def _report_dropped(self, growth: int) -> None:
        """Report why the recording was dropped; the process grew by ``growth`` KiB."""
        if growth > self.growth_max_kib:
            text = "the process grew by %d MiB while a step was recorded, more than %d"
            self._refuse("window-too-large", text % (growth >> 10, self.growth_max_kib >> 10))
        else:
            self._refuse("window-too-long", "the recording of a step reached the time limit before the step ended")
        if growth > self.growth_max_kib and self.growth_max_kib < _GROWTH_MAX_KIB:  # a retry failed, too
            _failed_windows[self.tracker.kind, self.key] = _TRIES

    def _refuse(self, slug: str, text: str) -> None:
        steps = (self.tracker.kind, self.key)
        _failed_windows[steps] = _failed_windows.get(steps, 0) + 1
        report_once(self.channel, slug, text)


def duration_limit_s(channel: Channel, tries: int = 0) -> float:
    """Return the maximum duration of a window (seconds), so that its data fits the ring.

    ``tries`` is the number of failed windows before.
    """
    if _max_growth:
        return max(_DURATION_LIMIT_MIN_S, min(DURATION_MAX_S, channel.data_max / _max_growth))
    return DURATION_MAX_S if tries else _FIRST_DURATION_MAX_S


def report_once(channel: Channel, slug: str, text: str) -> None:
    """Put a refusal, once for each slug."""
    if slug not in _reported_slugs:
        _reported_slugs.add(slug)
        channel.report(slug, text)


@guarded
def _begin(tracker: Tracker, ordinal: int, key: int, count: int) -> tuple[bool, bool] | None:
    global current
    hold = _open_lock.take()
    if hold is None:
        tracker.count_missed(ordinal, count)
        return None
    try:
        window = current
        if window is not None:
            if window.pid == clock.getpid() and not _free_abandoned(window):
                tracker.count_missed(ordinal, count)
                return None
            current = None
        level = tracker.level(ordinal, key, count)
        return True, level is not None and _open(tracker, ordinal, key, level, count)
    finally:
        del hold


def begin(tracker: Tracker, ordinal: int, key: int, count: int) -> tuple[bool, bool]:
    """Open a window for the step, which counts as ``count`` steps, if the tracker selects it.

    Return (whether the pacer gets the step's duration, whether the window is open).
    """
    return _begin(tracker, ordinal, key, count) or (False, False)


def end_step(step: Step, duration: int, count: int) -> None:
    """Record the end of the traced ``step`` after ``duration`` ns; it counts as ``count`` steps."""
    own_ns: int | None = None
    try:
        own_ns = _close(step, duration, count)
    finally:
        step.tracker.note_traced(step.key, duration, own_ns or 0)


@guarded
def _close(step: Step, duration: int, count: int) -> int:
    """Deliver the window of ``step`` and return our work for it, ns."""
    window = current
    if window is None or not window.is_of(step):
        window = _dropped_windows.pop((step.tracker.kind, step.ordinal), None)
        if window is not None:
            window.channel.count_lost_trace()
        return 0
    try:
        window.deliver(step, duration, count)
    finally:
        window.close()
    return window.own_ns


@guarded
def add_function(call: dict[str, Any]) -> None:
    """Add a called function to the open window; ``call`` has the call's ``self`` and ``args``."""
    window = current
    function = call.get("self")
    if window is None or function is None or window.session.is_stopped:  # it may stop long before its step ends
        return
    entry = window.functions.get(id(function))
    if entry is None or entry[0]() is not function:
        model_refs = [weakref.ref(each) for each in call.get("args") or () if models.is_model(each)]
        window.functions[id(function)] = (weakref.ref(function), model_refs)


@guarded
def drop(step: Step) -> None:
    """Drop the window of ``step``, which found no data and so was no step."""
    window = current
    if window is not None and window.is_of(step):
        try:
            window.session.drop()
        finally:
            window.close()
    else:
        _dropped_windows.pop((step.tracker.kind, step.ordinal), None)


@guarded
def drop_current() -> None:
    """Drop any open window: the job is about to start a profiler session."""
    window = current
    if window is None or window.pid != clock.getpid():
        return
    if not window.session.start_ns and window.thread_ident == _thread.get_ident():
        return  # our own session is starting
    _dropped_windows[window.step_id] = window
    window.forget()
    window.session.drop()
    if window.is_closed:  # meanwhile, in its own thread
        _dropped_windows.pop(window.step_id, None)


@guarded
def _finish() -> None:
    """Drop any open window, and count all windows whose steps have not ended yet as lost."""
    drop_current()
    for step_id in list(_dropped_windows):
        window = _dropped_windows.pop(step_id, None)
        if window is not None:
            window.channel.count_lost_trace()


def _free_abandoned(window: Window) -> bool:
    """Free ``window`` and return True if an exception kept this thread from closing it."""
    if window.thread_ident != _thread.get_ident() or not window.session.is_stopped:
        return False
    window.session.free()
    return True


def _open(tracker: Tracker, ordinal: int, key: int, level: int, count: int) -> bool:
    """Open a window for step ``ordinal``; False when that was refused."""
    global current
    channel = tracker.channel
    assert channel is not None
    start = clock.mono()
    reason = _refusal_reason(channel, tracker.kind, key, level)
    if reason is None:
        window = current = Window(tracker, channel, ordinal, key)
        try:
            reason = _start(window)
            window.head_word |= threads.head_word(window.thread_ident)  # other threads may have begun calls meanwhile
        except BaseException:
            window.close()
            raise
        if reason is None:
            window.own_ns = clock.mono() - start
            return True
        window.close()
    tracker.spend(clock.mono() - start)
    if reason is profiler.BUSY_REASON:
        tracker.count_missed(ordinal, count)
    if reason[0] and not _is_ending:
        report_once(channel, *reason)
    return False


def _start(window: Window) -> tuple[str, str] | None:
    """Open the session of ``window``; return (slug, text) of an obstacle, None without one."""
    # Reserved after ``current`` is set: a later claim of the job's finds the window and drops it.
    hold = profiler_lock.reserve()
    if hold is None:
        return profiler.BUSY_REASON
    try:
        if _is_ending:  # `_at_exit` may have run before ``current`` was set
            return ("", "")
        tries = _failed_windows.get((window.tracker.kind, window.key), 0)
        size_max_kib = window.start_peak_kib + window.growth_max_kib if window.start_peak_kib else sys.maxsize
        return window.session.open(duration_limit_s(window.channel, tries), size_max_kib)
    finally:
        del hold  # a traceback that the job keeps must not hold it


def _refusal_reason(channel: Channel, kind: int, key: int, level: int) -> tuple[str, str] | None:
    """Return (slug, text) of an obstacle to a window, None without one.

    The slug is empty if the obstacle is not to be reported.
    """
    if _is_ending or _failed_windows.get((kind, key), 0) >= _TRIES:
        return ("", "")
    if level == layout.LEVEL_SOFTWARE:
        return ("profiler-off", "with --trace-level software, steps that need a profiler session are not traced")
    if _is_server_started:
        return ("profiler-server", "the job runs a profiler server, which a session of ours would disturb")
    at_end(_at_exit)
    in_child(_after_fork)
    core.at_disarm(_finish)
    try:
        module = importlib.import_module(profiler.MODULE)
        channel.grow()
    except ImportError as error:
        if guard.raised_by_job(error):
            raise
        module = None
    except ChannelError as error:
        return (error.slug, error.args[0])
    if not hasattr(getattr(module, "ProfilerSession", None), "export_to_tb"):
        return ("profiler-missing", "this TensorFlow has no profiler session that writes an XSpace")
    return None


def _at_exit() -> None:
    """Drop the windows of other threads before the interpreter ends."""
    global _is_ending
    _is_ending = True
    _finish()


def _after_fork() -> None:
    """Abandon the parent's windows in a forked child."""
    global current, _open_lock
    window, current = current, None
    _open_lock = TryLock()
    windows = [*_dropped_windows.values(), *([] if window is None else [window])]
    _dropped_windows.clear()
    for window in windows:
        window.session.leak()


def concrete_functions(function: Any) -> list[Any]:
    """Return the existing concrete functions of ``function``, without tracing."""
    functions: list[Any] = [function] if hasattr(function, "structured_input_signature") else []
    for holder in (function, getattr(function, "_stateful_fn", None), getattr(function, "_stateless_fn", None)):
        cache = getattr(holder, "_function_cache", None)
        values = getattr(cache, "values", None) or getattr(cache, "all_values", None)
        if values is not None:
            functions.extend(values())
    return functions


def patch(module: ModuleType) -> None:
    """Drop our window when the job starts a profiler session or server of ``module``."""
    session = getattr(module, "ProfilerSession", None)
    if session is not None:
        call_observer.observe(session, "start", profiler_lock.claim, observes_end=True)
    call_observer.observe(module, "start_server", _server_starting)


def _server_starting(_port: int) -> None:
    global _is_server_started
    _is_server_started = True
    drop_current()
