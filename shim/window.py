"""Windows: a few steps in a row recorded by a profiler session, where there is no session of TensorFlow to ask for RunMetadata."""

from __future__ import annotations

import _thread
import atexit
import importlib

from . import clock, entry, graph, layout
from .guard import guarded, theirs
from .pace import FIRST
from .profiler import MODULE, Session
from .ring import WORD, ChannelError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .ring import Channel
    from .step import Step
    from .tracker import Tracker

MOST = 16  # steps of one window
_WAIT = 10.0  # seconds for which the end of a bracket or of the process waits for a window's bytes
_DROPPED, _SELF = WORD["dropped_traces"], WORD["self_ns"]

#: The process's one window: recording, or being closed.
current: Window | None = None
_deciding = _thread.allocate_lock()
_told: set[str] = set()  # slugs of refusals that were told, once each
_served = False  # a profiler server of the job's may start a session at any moment
_bytes = 0  # of a step in the last window


class Window(object):
    """A run of traced steps: ``first`` is the ordinal of the first, ``steps`` how many there were so far."""

    def __init__(self, tracker: Tracker, channel: Channel, ordinal: int, limit: int) -> None:
        self.tracker = tracker
        self.channel = channel
        self.first = ordinal
        self.steps = 0
        self.limit = limit
        self.thread = _thread.get_ident()
        self.pid = clock.getpid()
        self.open = True
        self.functions: dict[int, Any] = {}  # id -> function that was called in it
        self.own = 0
        self.last: tuple[int, int] | None = None  # (key, duration) of the last step
        self.session = Session(self._deliver)

    def close(self) -> None:
        """Stop recording; the bytes follow by themselves, and the graphs of what was called now."""
        if not self.open:
            return
        self.open = False
        self.session.close()
        functions, self.functions = list(self.functions.values()), {}
        for function in functions:
            for concrete in concretes(function):
                self.own += graph.ensure_functions_sent(concrete.graph, self.channel)

    def settle(self, seconds: float) -> bool:
        """Return whether all is done, waiting so long for it; then the cost of it is booked."""
        start = clock.mono()
        if not self.session.wait(seconds):
            return False
        self.own += self.session.spent + clock.mono() - start
        if self.last is not None:
            self.tracker.traced(self.last[0], self.last[1], self.own)
        return True

    def _deliver(self, session: Session, data: bytes) -> None:
        """In the session's thread: put its bytes as a record."""
        global _bytes
        if not self.steps or session.refused is not None:
            return
        _bytes = len(data) // self.steps
        done = self.channel.put(
            layout.XSPACE,
            data,
            self.first,
            session.began,
            session.began_real,
            session.ended - session.began,
            0,
            self.steps,
            self.tracker.kind,
        )
        if not done:
            self.channel.words[_DROPPED] += self.steps


@guarded
def _ask(tracker: Tracker, ordinal: int, key: int) -> tuple[bool, bool] | None:
    global current
    if not _deciding.acquire(False):
        return None
    try:
        window = current
        if window is not None and window.pid != clock.getpid():
            window = current = None
        wanted = tracker.level(ordinal, key) is not None
        if window is not None and window.open:
            if window.thread != _thread.get_ident():
                return None
            if wanted and window.tracker is tracker:
                return True, True
            window.close()
        if window is not None:
            if not window.settle(_WAIT if wanted else 0):
                return None
            _forget()
        return True, wanted and _open(tracker, ordinal)
    finally:
        _deciding.release()


def ask(tracker: Tracker, ordinal: int, key: int) -> tuple[bool, bool]:
    """Return (whether the step's time is to be noted, whether it is traced): it is the next of a window, or opens one."""
    return _ask(tracker, ordinal, key) or (False, False)


@guarded
def traced(step: Step, duration: int, count: int) -> None:
    """Take note that ``step``, which was traced, has ended; it stood for ``count`` steps of its kind."""
    window = current
    if window is None or window.tracker is not step.tracker:
        return
    if window.last is not None:
        step.tracker.traced(window.last[0], window.last[1], 0)
    window.last = (step.key, duration)
    window.steps += count
    if window.steps >= window.limit:
        window.close()


@guarded
def called(function: object) -> None:
    """Take note of a function that was called: its graph is wanted if a window is open."""
    window = current
    if window is not None and window.open:
        window.functions[id(function)] = function


@guarded
def finish() -> None:
    """Close the window, if there is one of this thread, and see that its bytes are put: what it belonged to ends here."""
    window = current
    if window is not None and window.thread == _thread.get_ident():
        _finish(window)


@guarded
def pause(tracker: Tracker) -> None:
    """Close the window if it is of steps of ``tracker``, which pause; nothing is waited for."""
    window = current
    if window is not None and window.tracker is tracker and window.thread == _thread.get_ident():
        window.close()


@guarded
def give_way() -> None:
    """Close the window at once, whose ever it is: the job is about to start a profiler session of its own."""
    window = current
    if window is not None:
        _finish(window)


def _finish(window: Window) -> None:
    if window.pid == clock.getpid():
        window.close()
        if not window.settle(_WAIT):
            return
    _forget()


def _forget() -> None:
    global current
    current = None
    atexit.unregister(give_way)


def _open(tracker: Tracker, ordinal: int) -> bool:
    """Open a window at step ``ordinal``; False when that was refused."""
    global current
    channel = tracker.channel
    assert channel is not None
    start = clock.mono()
    refused = _hindrance(channel)
    if refused is None:
        window = Window(tracker, channel, ordinal, _limit(tracker))
        if window.session.open():
            current = window
            atexit.register(give_way)
            window.own = clock.mono() - start
            return True
        refused = window.session.refused
    channel.words[_SELF] += clock.mono() - start
    if refused is not None and refused[0] not in _told:
        _told.add(refused[0])
        channel.refuse(*refused)
    return False


def _hindrance(channel: Channel) -> tuple[str, str] | None:
    """Return (slug, text) of what speaks against a window, None when nothing does."""
    if _served:
        return ("profiler-server", "the job runs a profiler server, which a session of ours would disturb")
    try:
        module = importlib.import_module(MODULE)
        channel.grow()  # here: the session's thread has no descriptors
    except ImportError as error:
        if theirs(error):
            raise
        module = None
    except ChannelError as error:
        return (error.slug, error.args[0])
    if not hasattr(getattr(module, "ProfilerSession", None), "export_to_tb"):
        return ("profiler-missing", "this TensorFlow has no profiler session that writes an XSpace")
    return None


def _limit(tracker: Tracker) -> int:
    """Return how many steps a window may have: as its policy goes, and so that its bytes leave most of the ring free."""
    assert tracker.pace is not None
    assert tracker.channel is not None
    asked = tracker.pace.policy
    if asked.mode == layout.MODE_BUDGET:
        return FIRST
    if asked.mode == layout.MODE_EVERY:
        return 1
    if not _bytes:
        return FIRST
    return max(1, min(MOST, tracker.channel.ring_bytes // 8 // _bytes))


def concretes(function: object) -> list[Any]:
    """Return the concrete functions that ``function`` has made so far; nothing is traced by asking."""
    found: list[Any] = []
    for holder in (function, getattr(function, "_stateful_fn", None), getattr(function, "_stateless_fn", None)):
        cache = getattr(holder, "_function_cache", None)
        values = getattr(cache, "values", None) or getattr(cache, "all_values", None)
        if values is not None:
            found.extend(values())
    return found


def patch(module: ModuleType) -> None:
    """Give way to the job's own profiler sessions, in TensorFlow's module of them."""
    session = getattr(module, "ProfilerSession", None)
    if session is not None:
        entry.tell(session, "start", lambda _session: give_way())
    entry.tell(module, "start_server", _serving)


def _serving(_port: int) -> None:
    global _served
    _served = True
    give_way()
