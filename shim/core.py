"""The shim's state in this process: armed or not, channel, patches (docs/how-it-works.md)."""

import sys
from _thread import RLock

from . import guard, hook, process_events
from .own_os import os

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Collection, Mapping

    from .channel.ring import Channel
    from .pacing.tracker import NoChannelYet, OpenChannel, Tracker

_ROOT_IN_JOBS = "_tfprof"  # name of the root package in jobs


class State(object):
    """One process's state.

    ``environ`` has the settings. ``saw_start``: every step of the process began after the shim was
    armed in it. This is false where it is unknown: in a process that was attached to
    (``is_attached``), and in a forked child. ``frameworks`` are modules like tensorflow/patches.py,
    ``loaded_frameworks`` those that the job has imported; ``kinds`` are the kinds of spans of
    these. ``trackers`` has one tracker for each step kind in use. ``replaced`` is the undo list of
    the patches. ``undo_calls`` are further functions that ``disarm`` calls. ``missing`` are texts
    about names that a framework lacks. ``refused``: the channel cannot be created.
    """

    def __init__(
        self, launch: int, folder: str, environ: "Mapping[str, str]", frameworks: "Collection[Any]", attached: bool
    ) -> None:
        self.launch = launch
        self.folder = folder
        self.environ = environ
        self.saw_start, self.is_attached = not attached, attached
        self.lock = RLock()
        self.frameworks = frameworks
        self.loaded_frameworks: "list[Any]" = []
        self.kinds: "dict[int, tuple[str, str, int]]" = {}
        self.trackers: "dict[int, Tracker]" = {}
        self.budgeted_kinds: "set[int]" = set()
        self.replaced: "list[tuple[Any, str, Any, Any]]" = []
        self.undo_calls: "list[Callable[[], object]]" = []
        self.missing: "list[str]" = []
        self.forget()

    def forget(self) -> None:
        """Reset the channel: the process has none yet, or is a forked child."""
        self.opened: "OpenChannel | None" = None
        self.refused = False

    @property
    def channel(self) -> "Channel | None":
        """The process's channel, if it is open."""
        return None if self.opened is None else self.opened[0]


_state: "State | None" = None


def state() -> "State | None":
    """Return the process's state, None while the shim is not armed."""
    return _state


def arm(environ: "Mapping[str, str]", frameworks: "Collection[Any]", attached: bool = False) -> None:
    """Arm the shim if ``environ`` has a valid TFPROF_RUN; patch loaded modules now. Idempotent.

    ``frameworks`` are modules like tensorflow/patches.py. A setuid or setgid process is not armed.
    ``attached``: the process was already running, perhaps in the middle of a step.
    """
    global _state
    launch_and_folder = _launch_and_folder(environ)
    if launch_and_folder is None or _state is not None:
        return
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return
    _state = State(*launch_and_folder, environ=environ, frameworks=frameworks, attached=attached)
    guard.packages.update(*(framework.OWN_PACKAGES for framework in frameworks))
    process_events.in_child(_after_fork)
    framework_of = {name: framework for framework in frameworks for name in [*framework.PATCHES, *framework.PACKAGES]}
    hook.install(framework_of, lambda name, module: _patch(framework_of[name], name, module))


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
        _undo(last_state)  # completes the first call, which an exception of the job's interrupted
        raise
    finally:
        _remove_modules()


def _undo(last_state: "State") -> None:
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
    guard.count = None


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
    """Return ``name`` of ``owner``, a function for ``__code__``; None if missing or inherited."""
    return owner.__code__ if name == "__code__" else owner.__dict__.get(name)


def tracker(kind: int, budgeted: bool = True) -> "Tracker":
    """Return the tracker of ``kind``; ``budgeted``: the budget refers to the time of its steps."""
    assert _state is not None
    kind_tracker = _state.trackers.get(kind)
    if kind_tracker is None:
        from .pacing.tracker import Tracker

        modules = ((row, _module(row, row.KINDS)) for row in _state.frameworks)
        framework, counted_ns = next((row, kinds.COUNTED_NS[kind]) for row, kinds in modules if kind in kinds.KINDS)
        new_tracker = Tracker(kind, _ensure_channel, counted_ns, lambda: _module(framework, framework.RECORDER))
        kind_tracker = _state.trackers.setdefault(kind, new_tracker)
    if budgeted:
        _state.budgeted_kinds.add(kind)
    return kind_tracker


def _module(framework: "Any", name: str) -> "Any":
    full_name = "%s.%s" % (framework.__package__, name)
    __import__(full_name)
    return sys.modules[full_name]


def _launch_and_folder(environ: "Mapping[str, str]") -> "tuple[int, str] | None":
    """Return the parts of TFPROF_RUN, None when it is absent or invalid."""
    launch, separator, folder = environ.get("TFPROF_RUN", "").partition("@")
    number = guard.attempt(ValueError, int, launch, 16) if separator and len(launch) == 16 else None
    return None if number is None else (number, folder)


def _ensure_channel() -> "OpenChannel | NoChannelYet | None":
    """Return (channel, put, policy), creating the channel if needed; None where that fails.

    Return () in a signal handler that interrupts the creation in the same thread.
    """
    if _state is None:
        return None
    if _state.opened is None:
        from . import opening

        if _state.lock._is_owned():  # type: ignore[attr-defined]  # threading.Condition relies on it
            return ()
        with _state.lock:  # another thread may be creating the channel
            if _state.opened is None and not _state.refused:
                opening.open_channel(_state, disarm)
    return _state.opened


def _after_fork() -> None:
    """Drop the parent's channel in a forked child, and reset the trackers."""
    if _state is None:
        return
    guard.count = None
    parents_channel = _state.channel
    _state.lock = RLock()
    _state.saw_start = _state.is_attached = False
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
    guard.is_retired = True
    for name in [name for name in sys.modules if name.partition(".")[0] == root]:
        for path in getattr(sys.modules.pop(name), "__path__", ()):
            sys.path_importer_cache.pop(path, None)


@guard.guarded
def _patch(framework: "Any", name: str, module: "ModuleType") -> None:
    """Patch ``module`` of ``framework``, just loaded as ``name``, if there is a channel.

    A package is only checked, and only after a module of the framework.
    """
    if _state is None:
        return
    if name in framework.PACKAGES:
        if _state.channel is not None:
            _check(framework, framework.PACKAGES[name], module)
        return
    if framework not in _state.loaded_frameworks and name not in framework.MARKS:
        _state.loaded_frameworks.append(framework)
        _state.kinds.update(_module(framework, framework.KINDS).KINDS)
        channel = _state.channel
        hold = None if channel is None else channel.hello.lock.take()
        if channel is not None and hold is not None:  # else whoever publishes a name writes the kinds, too
            channel.hello.write()
        del hold
    if name not in framework.MARKS and _ensure_channel() is None:  # marks need no channel yet
        return
    patch_module, function, names = framework.PATCHES[name]
    if _check(framework, names, module) is not False:
        getattr(_module(framework, patch_module), function)(module)


@guard.guarded
def _check(framework: "Any", names: str, module: "ModuleType") -> bool:
    """Report which of ``names`` the module lacks; return whether it can be patched."""
    from . import name_check, opening

    table = _module(framework, framework.NAMES)
    missing, can_be_patched = name_check.check(module, getattr(table, names), opening.version_of(framework))
    if missing:
        effect = "some steps, or parts of them, may not be recorded" if can_be_patched else "it is not patched"
        report_missing("%s lacks names that tfprof relies on: %s; %s" % (module.__name__, ", ".join(missing), effect))
    return can_be_patched


def report_missing(text: str) -> None:
    """Report once that the framework lacks something; forked children report it, too."""
    if _state is not None and text not in _state.missing:
        _state.missing.append(text)
        if _state.channel is not None:
            _state.channel.report("patch-missing", text)
