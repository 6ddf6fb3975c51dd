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


_ROOT_IN_JOBS = "_tfprof"  # name of the root package in jobs


class State(object):
    """One process's state.

    ``environ`` has the settings. ``saw_start``: every step of the process began after the shim was
    armed in it. This is false where it is unknown: in a process that was attached to, and in a
    forked child. ``framework`` is the entry of FRAMEWORKS that was imported first. ``trackers`` has
    one tracker for each step kind in use. ``replaced`` is the undo list of the patches.
    ``undo_calls`` are further functions that ``disarm`` calls. ``refused``: the channel cannot be
    created.
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
    """Arm the shim if ``environ`` has a valid TFPROF_RUN; patch loaded modules now. Idempotent.

    A setuid or setgid process is not armed. ``attached``: the process was already running, perhaps
    in the middle of a step.
    """
    global _state
    launch_and_folder = _launch_and_folder(environ)
    if launch_and_folder is None or _state is not None:
        return
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return
    _state = State(*launch_and_folder, environ=environ, attached=attached)
    process_events.in_child(_after_fork)
    hook.install({name: framework for framework in FRAMEWORKS for name in framework.PATCHES}, _patch)


def disarm() -> None:
    """Undo everything: patches, import hook, descriptor, modules.

    Our objects that the job still refers to do nothing from now on. The channel's memory is freed
    when nothing refers to it any more.
    """
    last_state = _state
    if last_state is None:
        return
    try:
        _undo(last_state)
    except BaseException:
        _undo(last_state)  # an exception of the job's interrupted the first call
        raise
    finally:
        _remove_modules()


def _undo(last_state: "State") -> None:
    """Undo the changes of ``last_state``; a second call completes an interrupted first one."""
    global _state
    _state = None
    hook.remove()
    for owner, name, original, replacement in reversed(last_state.replaced):
        if _own_attribute(owner, name) is replacement:
            setattr(owner, name, original)
    for tracker in last_state.trackers.values():
        tracker.stop()
    for undo in last_state.undo_calls:
        guard.guarded(undo)()
    process_events.forget()
    if last_state.channel is not None:
        last_state.channel.detach()
    guard.count_errors_in(None)


def at_disarm(call: "Callable[[], object]") -> None:
    """Call ``call``, guarded, when the shim is disarmed; a second registration has no effect."""
    if _state is not None and call not in _state.undo_calls:
        _state.undo_calls.append(call)


def replace(owner: "Any", name: str, make: "Callable[[Any], Any]") -> None:
    """Replace ``owner.name`` by ``make(original)`` until ``disarm``; idempotent."""
    assert _state is not None
    original = _own_attribute(owner, name)
    if original is None or any(original is replacement for _, _, _, replacement in _state.replaced):
        return
    replacement = make(original)
    setattr(owner, name, replacement)
    _state.replaced.append((owner, name, original, replacement))


def _own_attribute(owner: "Any", name: str) -> "Any":
    """Return the attribute ``name`` of ``owner``; None if it is missing or inherited.

    For ``__code__``, ``owner`` is a function.
    """
    return owner.__code__ if name == "__code__" else owner.__dict__.get(name)


def tracker(kind: int, budgeted: bool = True) -> "Tracker":
    """Return the process's tracker of steps of ``kind``.

    ``budgeted``: the time of these steps counts as time in steps, to which the budget refers.
    """
    assert _state is not None
    kind_tracker = _state.trackers.get(kind)
    if kind_tracker is None:
        from .pacing.tracker import Tracker

        kind_tracker = _state.trackers.setdefault(kind, Tracker(kind, _ensure_channel))
    if budgeted:
        _state.budgeted_kinds.add(kind)
    return kind_tracker


def channel() -> "Channel | None":
    """Return the process's channel, created if needed.

    None where that fails, or while the channel is being created.
    """
    opened = _ensure_channel()
    return opened[0] if opened else None


def thread_id() -> int:
    """Return the kernel's id of the calling thread."""
    threads = _state.threads if _state is not None else None
    return threads.tid if threads is not None else 0


def _launch_and_folder(environ: "Mapping[str, str]") -> "tuple[int, str] | None":
    """Return the parts of TFPROF_RUN, None when it is absent or invalid."""
    launch, separator, folder = environ.get("TFPROF_RUN", "").partition("@")
    try:
        return (int(launch, 16), folder) if separator and len(launch) == 16 else None
    except ValueError as error:
        if guard.raised_by_job(error):
            raise
        return None


def _ensure_channel() -> "OpenChannel | NoChannelYet | None":
    """Return (channel, put, policy), creating the channel if needed; None where that fails.

    Return () in a signal handler that interrupts the creation in the same thread.
    """
    if _state is None:
        return None
    if _state.pid != clock.getpid():
        _after_fork()
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


def _after_fork() -> None:
    """Drop the parent's channel in a forked child, and reset the trackers."""
    if _state is None or _state.pid == clock.getpid():
        return
    guard.count_errors_in(None)
    parents_channel = _state.channel
    _state.lock = _thread.RLock()
    _state.saw_start = False
    _state.forget()
    for kind_tracker in _state.trackers.values():
        kind_tracker.forget()
    if parents_channel is not None:
        parents_channel.abandon()


def _remove_modules() -> None:
    """Remove our modules and their finders from the import system of a job.

    Outside of a job they stay: there the root package has another name.
    """
    root = __package__.partition(".")[0]
    if root != _ROOT_IN_JOBS:
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
    framework = next(framework for framework in FRAMEWORKS if name in framework.PATCHES)
    if _state.framework is None:
        _state.framework = framework
    if _ensure_channel() is None:
        return
    patch_module, function = framework.PATCHES[name]
    patch_module = "%s.%s" % (framework.__package__, patch_module)
    __import__(patch_module)
    getattr(sys.modules[patch_module], function)(module)
