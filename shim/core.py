"""The shim's state in this process: armed or not, channel, patches (docs/how-it-works.md)."""

import _thread
import os
import sys

from . import clock, guard, hook, process_events
from .tensorflow import patches as tensorflow

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Mapping, Tuple

    from .channel.ring import Channel
    from .channel.spans import Put
    from .pacing.current_policy import CurrentPolicy
    from .pacing.tracker import Tracker

    OpenChannel = Tuple[Channel, Put, CurrentPolicy]
    NoChannelYet = Tuple[()]

#: The frameworks that are patched: modules with NAME, VERSION and PATCHES (tensorflow/patches.py).
FRAMEWORKS = (tensorflow,)


_IN_JOBS = "_tfprof"  # name of the root package in jobs


class State(object):
    """One process's state.

    ``environ`` has the settings. ``saw_start``: every step of the process began after the shim was
    armed in it. This is unknown in a process that was attached to, and in a forked child.
    ``framework`` is the row of the framework that was imported first. ``trackers`` has one tracker
    for each step kind in use. ``replaced`` is the undo list of the patches. ``undo_calls`` are
    further functions that ``disarm`` calls.
    """

    def __init__(self, launch: int, folder: str, environ: "Mapping[str, str]", attached: bool) -> None:
        self.launch = launch
        self.folder = folder
        self.environ = environ
        self.saw_start = not attached
        self.lock = _thread.RLock()
        self.framework: "ModuleType | None" = None
        self.trackers: "dict[int, Tracker]" = {}
        self.budgeted_kinds: "set[int]" = set()
        self.replaced: "list[tuple[Any, str, Any, Any]]" = []
        self.undo_calls: "list[Callable[[], object]]" = []
        self.forget()

    def forget(self) -> None:
        """Reset the channel: the process has none yet, or is a forked child."""
        self.pid = clock.getpid()
        self.threads: "clock.ThreadId | None" = None
        self.channel: "Channel | None" = None
        self.put: "Put | None" = None
        self.current_policy: "CurrentPolicy | None" = None
        self.refused = False


_state: "State | None" = None


def state() -> "State | None":
    """Return the process's state, None while the shim is not armed."""
    return _state


def arm(environ: "Mapping[str, str]", attached: bool = False) -> None:
    """Arm the shim if ``environ`` asks for it; patch loaded modules now. Idempotent.

    ``attached``: the process was already running, perhaps in the middle of a step.
    """
    global _state
    run = _run(environ)
    if run is None or _state is not None:
        return
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return
    _state = State(*run, environ=environ, attached=attached)
    process_events.in_child(_forked)
    hook.install({name: row for row in FRAMEWORKS for name in row.PATCHES}, _patch)


def disarm() -> None:
    """Undo everything: patches, import hook, descriptor, modules.

    Our objects that the job still refers to do nothing from now on. The channel's memory is freed
    when nothing refers to it any more.
    """
    old = _state
    if old is None:
        return
    try:
        _undo(old)
    except BaseException:
        _undo(old)  # an exception of the job's interrupted it
        raise
    finally:
        _remove_modules()


def _undo(old: "State") -> None:
    """Undo what the process of state ``old`` has changed; nothing of it is undone twice."""
    global _state
    _state = None
    hook.remove()
    for owner, name, original, ours in reversed(old.replaced):
        if _own_attribute(owner, name) is ours:
            setattr(owner, name, original)
    for tracker in old.trackers.values():
        tracker.stop()
    for undo in old.undo_calls:
        guard.guarded(undo)()
    process_events.forget()
    if old.channel is not None:
        old.channel.detach()
    guard.count_errors_in(None)


def at_disarm(call: "Callable[[], object]") -> None:
    """Call ``call``, guarded, when the shim is disarmed; a second registration has no effect."""
    if _state is not None and call not in _state.undo_calls:
        _state.undo_calls.append(call)


def replace(owner: "Any", name: str, make: "Callable[[Any], Any]") -> None:
    """Replace ``owner.name`` by ``make(original)`` until ``disarm``; idempotent."""
    assert _state is not None
    original = _own_attribute(owner, name)
    if original is None or any(original is ours for _, _, _, ours in _state.replaced):
        return
    ours = make(original)
    setattr(owner, name, ours)
    _state.replaced.append((owner, name, original, ours))


def _own_attribute(owner: "Any", name: str) -> "Any":
    """Return the attribute ``name`` that ``owner`` itself has, not inherits; None without one.

    For ``__code__``, ``owner`` is a function.
    """
    return owner.__code__ if name == "__code__" else owner.__dict__.get(name)


def tracker(kind: int, budgeted: bool = True) -> "Tracker":
    """Return the process's tracker of steps of ``kind``.

    ``budgeted``: the cost of tracing is compared with the time of these steps.
    """
    assert _state is not None
    found = _state.trackers.get(kind)
    if found is None:
        from .pacing.tracker import Tracker

        found = _state.trackers.setdefault(kind, Tracker(kind, _ensure_channel))
    if budgeted:
        _state.budgeted_kinds.add(kind)
    return found


def channel() -> "Channel | None":
    """Return the process's channel, created if needed.

    None where that fails, or while the channel is being created.
    """
    made = _ensure_channel()
    return made[0] if made else None


def thread_id() -> int:
    """Return the kernel's id of the calling thread."""
    threads = _state.threads if _state is not None else None
    return threads.tid if threads is not None else 0


def _run(environ: "Mapping[str, str]") -> "tuple[int, str] | None":
    """Return (launch, folder) of TFPROF_RUN, None when it is absent or invalid."""
    launch, at, folder = environ.get("TFPROF_RUN", "").partition("@")
    try:
        return (int(launch, 16), folder) if at and len(launch) == 16 else None
    except ValueError as error:
        if guard.raised_by_job(error):
            raise
        return None


def _ensure_channel() -> "OpenChannel | NoChannelYet | None":
    """Return (channel, put, policy), creating the channel if needed; None where that fails.

    A signal handler that interrupts the creation in its own thread gets ().
    """
    if _state is None:
        return None
    if _state.pid != clock.getpid():
        _forked()
    if _state.put is None:
        from .channel import channel_setup

        if _state.lock._is_owned():  # type: ignore[attr-defined]  # threading.Condition relies on it
            return ()
        with _state.lock:  # another thread may be creating the channel
            if _state.channel is None and not _state.refused:
                channel_setup.open_channel(_state)
    channel, put, current_policy = _state.channel, _state.put, _state.current_policy
    if _state.refused or channel is None or put is None or current_policy is None:
        return None
    return channel, put, current_policy


def _forked() -> None:
    """Drop the parent's state in a forked child."""
    if _state is None or _state.pid == clock.getpid():
        return
    guard.count_errors_in(None)
    parents = _state.channel
    _state.lock = _thread.RLock()
    _state.saw_start = False
    _state.forget()
    for each in _state.trackers.values():
        each.forget()
    if parents is not None:
        parents.abandon()


def _remove_modules() -> None:
    """Remove our modules and their finders from the import system of a job.

    Outside of a job, where the root package has another name, they stay.
    """
    root = __package__.partition(".")[0]
    if root != _IN_JOBS:
        return
    guard.retire()
    for name in [name for name in sys.modules if name.partition(".")[0] == root]:
        for path in getattr(sys.modules.pop(name), "__path__", ()):
            sys.path_importer_cache.pop(path, None)


@guard.guarded
def _patch(name: str, module: "ModuleType") -> None:
    """Patch ``module``, just loaded as ``name``, if there is a channel."""
    if _state is None:
        return
    row = next(row for row in FRAMEWORKS if name in row.PATCHES)
    if _state.framework is None:
        _state.framework = row
    if _ensure_channel() is None:
        return
    ours, function = row.PATCHES[name]
    ours = "%s.%s" % (row.__package__, ours)
    __import__(ours)
    getattr(sys.modules[ours], function)(module)
