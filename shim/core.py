"""The shim's state in this process: armed or not, channel, patches (docs/how-it-works.md)."""

import _thread
import os
import sys

from . import clock, guard, hook

TYPE_CHECKING = False  # types are quoted here: even __future__ would make every interpreter start slower
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Mapping, Tuple

    from ..formats.policy import Policy
    from .channel.ring import Channel
    from .channel.spans import Put
    from .pacing.tracker import Tracker

    Made = Tuple[Channel, Put, Policy]

#: Module of the job -> (our module in tensorflow/, its function that patches the job's module).
PATCHES = {
    "tensorflow.python.client.session": ("session", "patch"),
    "tensorflow.python.eager.def_function": ("function", "patch"),
    "tensorflow.python.eager.polymorphic_function.polymorphic_function": ("function", "patch"),
    "tensorflow.python.eager.function": ("outside", "patch_concrete"),
    "tensorflow.python.eager.polymorphic_function.monomorphic_function": ("outside", "patch_concrete"),
    "tensorflow.python.eager.polymorphic_function.concrete_function": ("outside", "patch_concrete"),
    "tensorflow.python.eager.backprop": ("outside", "patch_tape"),
    "tensorflow.python.training.optimizer": ("outside", "patch_optimizer"),
    "tensorflow.python.keras.optimizer_v2.optimizer_v2": ("outside", "patch_optimizer"),
    "keras.optimizer_v2.optimizer_v2": ("outside", "patch_optimizer"),
    "keras.optimizers.optimizer": ("outside", "patch_optimizer"),
    "keras.optimizers.optimizer_experimental.optimizer": ("outside", "patch_optimizer"),
    "keras.optimizers.optimizer_v2.optimizer_v2": ("outside", "patch_optimizer"),
    "keras.optimizers.legacy.optimizer_v2": ("outside", "patch_optimizer"),
    "keras.src.optimizers.base_optimizer": ("outside", "patch_optimizer"),
    "keras.src.optimizers.optimizer": ("outside", "patch_optimizer"),
    "keras.src.optimizers.legacy.optimizer_v2": ("outside", "patch_optimizer"),
    "tf_keras.src.optimizers.optimizer": ("outside", "patch_optimizer"),
    "tf_keras.src.optimizers.legacy.optimizer_v2": ("outside", "patch_optimizer"),
    "tensorflow.python.keras.engine.base_layer": ("outside", "patch_layers"),
    "keras.engine.base_layer": ("outside", "patch_layers"),
    "keras.src.engine.base_layer": ("outside", "patch_layers"),
    "keras.src.layers.layer": ("outside", "patch_layers"),
    "tf_keras.src.engine.base_layer": ("outside", "patch_layers"),
    "tensorflow.python.profiler.internal._pywrap_profiler": ("window", "patch"),
    "tensorflow.python.keras.callbacks": ("keras", "patch_callbacks"),
    "keras.callbacks": ("keras", "patch_callbacks"),
    "keras.src.callbacks": ("keras", "patch_callbacks"),
    "keras.src.callbacks.callback_list": ("keras", "patch_callbacks"),
    "tf_keras.src.callbacks": ("keras", "patch_callbacks"),
    "tensorflow.python.keras.engine.training": ("keras", "patch_model"),
    "tensorflow.python.keras.engine.training_v1": ("keras", "patch_model"),
    "keras.engine.training": ("keras", "patch_model"),
    "keras.engine.training_v1": ("keras", "patch_model"),
    "keras.src.engine.training": ("keras", "patch_model"),
    "keras.src.engine.training_v1": ("keras", "patch_model"),
    "tf_keras.src.engine.training": ("keras", "patch_model"),
    "tf_keras.src.engine.training_v1": ("keras", "patch_model"),
    "keras.src.backend.tensorflow.trainer": ("keras", "patch_model"),
}


class State(object):
    """One process's state.

    ``trackers`` are the trackers of each kind of step in use; ``replaced`` is the undo list of the
    patches.
    """

    def __init__(self, launch: int, folder: str) -> None:
        self.launch = launch
        self.folder = folder
        self.lock = _thread.allocate_lock()
        self.trackers: "dict[int, Tracker]" = {}
        self.budgeted_kinds: "set[int]" = set()
        self.replaced: "list[tuple[Any, str, Any, Any]]" = []
        self.forget()

    def forget(self) -> None:
        """Reset the channel: the process has none yet, or was forked."""
        self.pid = clock.getpid()
        self.threads: "clock.ThreadId | None" = None
        self.channel: "Channel | None" = None
        self.put: "Put | None" = None
        self.policy: "Policy | None" = None
        self.refused = False


_state: "State | None" = None


def state() -> "State | None":
    """Return the process's state, None while the shim is not armed."""
    return _state


def arm(environ: "Mapping[str, str]") -> None:
    """Arm the shim if ``environ`` asks for it; patch loaded modules now. Idempotent."""
    global _state
    run = _run(environ)
    if run is None or _state is not None:
        return
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return
    _state = State(*run)
    os.register_at_fork(after_in_child=guard.called_back(_forked))
    hook.install(PATCHES, _patch)


def disarm() -> None:
    """Undo everything: patches, import hook, channel words.

    Objects of ours that others still hold do nothing from now on.
    """
    global _state
    if _state is None:
        return
    old, _state = _state, None
    hook.remove()
    for owner, name, original, ours in reversed(old.replaced):
        if _own_attribute(owner, name) is ours:
            setattr(owner, name, original)
    for tracker in old.trackers.values():
        tracker.stop()
    if old.channel is not None:
        from .channel.ring import WORD

        old.channel.words[WORD["detached"]] = 1
    guard.watch(None)


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
    """Return the own attribute ``name`` of ``owner``: a function's code, or a definition."""
    return owner.__code__ if name == "__code__" else owner.__dict__.get(name)


def tracker(kind: int, budgeted: bool = True) -> "Tracker":
    """Return the process's tracker of steps of ``kind``.

    ``budgeted``: the cost of tracing is compared with the time of these steps.
    """
    assert _state is not None
    found = _state.trackers.get(kind)
    if found is None:
        from .pacing.tracker import Tracker

        found = _state.trackers.setdefault(kind, Tracker(kind, _make))
        if budgeted:
            _state.budgeted_kinds.add(kind)
    return found


def channel() -> "Channel | None":
    """Return the process's channel, created if needed; None where that fails."""
    made = _make()
    return None if made is None else made[0]


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
        if guard.theirs(error):
            raise
        return None


def _make() -> "Made | None":
    """Return (channel, put, policy), creating the channel if needed; None where that fails."""
    if _state is None:
        return None
    if _state.pid != clock.getpid():
        _forked()
    if _state.put is None:
        from .channel import channel_setup

        with _state.lock:  # also to wait for the thread that is at it
            if _state.channel is None and not _state.refused:
                channel_setup.open_channel(_state)
    channel, put, policy = _state.channel, _state.put, _state.policy
    if _state.refused or channel is None or put is None or policy is None:
        return None
    return channel, put, policy


def _forked() -> None:
    """Drop the parent's state in a forked child."""
    if _state is None or _state.pid == clock.getpid():
        return
    guard.watch(None)
    parents = _state.channel
    _state.lock = _thread.allocate_lock()
    _state.forget()
    for each in _state.trackers.values():
        each.forget()
    if parents is not None:
        parents.abandon()


@guard.guarded
def _patch(name: str, module: "ModuleType") -> None:
    """Patch ``module``, just loaded as ``name``, if there is a channel."""
    if _state is None or _make() is None:
        return
    ours, function = PATCHES[name]
    ours = "%s.tensorflow.%s" % (__package__, ours)
    __import__(ours)
    getattr(sys.modules[ours], function)(module)
