"""Checks for `handlers.py`: an exception in the shim leaves the process as it was."""

import _signal
import contextlib
import os
import sys
import time
import traceback
from _thread import allocate_lock, start_new_thread

#: Seconds after which a step in another thread counts as hanging.
HANG_S = 2
CHANNEL = "/memfd:tfprof"


class ProcessState:
    """The state of this process before a case."""

    def __init__(self):
        self.mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        self.files = open_files()
        self.has_channel = channel() is not None

    def changes(self):
        """Yield a text for each difference from the present state."""
        if _signal.pthread_sigmask(_signal.SIG_BLOCK, ()) != self.mask:
            yield "another signal mask"
        now, limit = open_files(), len(self.files) + (channel() is not None and not self.has_channel)
        if len(now) > limit:  # perhaps a thread that is ending still holds one
            time.sleep(0.1)
            now = open_files()
        if len(now) > limit:
            yield f"new descriptors: {sorted(set(now.items()) - set(self.files.items()))}"
        changed = [
            (fd, target)
            for fd, target in self.files.items()
            if now.get(fd) != target and not target.startswith(CHANNEL)
        ]
        if changed:
            yield f"changed descriptors: {changed}"


def open_files():
    """Return the target of each open descriptor."""
    targets = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            targets[int(name)] = os.readlink("/proc/self/fd/" + name)
    return targets


def shim(name):
    """Return the shim's module ``name``, None where it is not loaded."""
    return sys.modules.get("_tfprof.shim." + name)


def channel():
    """Return the process's channel, None where there is none."""
    state = shim("core") and shim("core").state()
    return state and state.channel


def steps():
    """Return the number of steps of all kinds so far."""
    if channel() is None:
        return 0
    layout = sys.modules["_tfprof.formats.layout"]
    first = layout.COUNTS_AT // 8
    return sum(channel().words[first : first + layout.KINDS_MAX])


def expire(follow_ups):
    """Wait for the time limit of a window that was left open, and let the next step release it."""
    window = shim("steps.window")
    deadline = time.monotonic() + HANG_S
    while window and window.current and time.monotonic() < deadline:
        if window.current.recording.is_stopped:
            follow_ups[0][0]()
        time.sleep(0.01)


def leftovers():
    """Yield a text for each lock, window or switch that is left behind."""
    window, graph = shim("steps.window"), shim("tensorflow.graph")
    thread_state, allocations = shim("steps.thread_state"), shim("tensorflow.allocations")
    if window and window.current:
        yield "an open window"
    if window and (window.claims or window._session_lock._holds):
        yield "a held profiler session"
    if graph and graph._sent_graphs and graph._sent_graphs.lock._holds:
        yield "a lock of the sent graphs that is held"
    if thread_state and (thread_state.local.thread_state.is_in_step or thread_state.is_other_thread_in_call()):
        yield "an open call"
    if allocations and allocations._turn_off:
        yield "reports of allocations that are still on"
    if channel() and channel().hello.lock._holds:
        yield "a lock of the names that is held"


def uncounted(follow_ups):
    """Yield a text for each step after the case that is not counted, here or in another thread.

    Each step runs once before, since the first count may include the interrupted step.
    """
    for number, (run, count) in enumerate(follow_ups if channel() else ()):
        run()
        for name, work in (("here", in_this_thread), ("in another thread", in_another_thread)):
            before = steps()
            work(run)
            counted = steps() - before
            if channel() and counted != count:
                yield f"{counted} of {count} steps {number} counted {name}"


def is_before_release(error):
    """Return whether ``error`` came just before a line of the shim that releases something.

    Then a descriptor stays open, or a signal stays blocked.
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    places = [
        (frame.f_globals.get("__file__"), line) for frame, line in frames if "_tfprof" in frame.f_globals["__name__"]
    ]
    if not places or not places[-1][0]:
        return False
    with open(places[-1][0]) as file:
        line = file.readlines()[places[-1][1] - 1]
    return any(call in line for call in ("os.close(", "SIG_SETMASK", "SIG_UNBLOCK"))


def in_this_thread(run):
    """Call ``run``."""
    run()


def in_another_thread(run):
    """Call ``run`` in another thread and wait for it."""
    done = allocate_lock()
    done.acquire()

    def work():
        try:
            run()
        finally:
            done.release()

    start_new_thread(work, ())
    if not done.acquire(True, HANG_S):
        raise RuntimeError("a step hangs in another thread")
